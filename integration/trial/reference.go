package trial

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// SplitBytes is the length of a line of Lines.
const SplitBytes = 128

// LinePerSplit returns flags that make each line of Lines a split.
func LinePerSplit() []string {
	return []string{"-D", fmt.Sprintf("mapreduce.input.fileinputformat.split.maxsize=%d", SplitBytes)}
}

// Lines returns n lines of words, of SplitBytes each.
func Lines(n int) []byte {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	var b []byte
	for range n {
		line := ""
		for len(line) < SplitBytes-6 {
			line += fmt.Sprintf("w%d ", r.IntN(300))
		}
		b = fmt.Appendf(b, "%-*s\n", SplitBytes-1, line)
	}
	return b
}

// Words returns about n bytes of lines of words; a few words are frequent, most are rare.
func Words(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(5, seed))
	vocabulary := make([]string, 1<<14)
	for i := range vocabulary {
		vocabulary[i] = fmt.Sprintf("%x-%s", i, "abcdefghijklmnop"[:r.IntN(16)])
	}
	b := make([]byte, 0, size+200)
	for len(b) < size {
		for range 4 + r.IntN(12) {
			b = append(append(b, vocabulary[r.IntN(len(vocabulary))&r.IntN(len(vocabulary))]...), ' ')
		}
		b[len(b)-1] = '\n'
	}
	return b
}

// CountWords returns the right output of a word count with one reduce.
func CountWords(text []byte) []byte {
	counts := make(map[string]*int)
	for w := range bytes.FieldsSeq(text) {
		n := counts[string(w)]
		if n == nil {
			n = new(int)
			counts[string(w)] = n
		}
		*n++
	}
	var b []byte
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		b = fmt.Appendf(b, "%s\t%d\n", w, *counts[w])
	}
	return b
}

// SortLines sorts lines.
func SortLines(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, nil)
}

// ReadParts reads the part files of an output directory, which must have _SUCCESS, and no other
// files but the types of binary records.
func ReadParts(t testing.TB, files dfs.FS, out string) map[string][]byte {
	t.Helper()
	infos, err := files.List(out)
	if err != nil {
		t.Fatal(err)
	}
	parts, success := make(map[string][]byte), false
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_SUCCESS":
			success = true
		case name == "_types":
		case strings.HasPrefix(name, "part-"):
			if parts[name], err = read(files, info.Name); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s has the file %s", out, name)
		}
	}
	if !success {
		t.Errorf("%s lacks _SUCCESS", out)
	}
	return parts
}

func read(files dfs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// JoinParts joins part files, sorted by name.
func JoinParts(parts map[string][]byte) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		b = append(b, parts[name]...)
	}
	return b
}

// CheckEqual fails the test if a result is not the right one.
func CheckEqual(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d bytes, want %d; from byte %d on they differ: %q, want %q", what, len(got), len(want), at, around(got, at), around(want, at))
}

func around(b []byte, at int) []byte { return b[max(0, at-50):min(len(b), at+50)] }
