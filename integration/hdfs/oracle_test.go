package hdfs_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// parts reads the part files of an output directory, in the order of their names.
func parts(t *testing.T, f dfs.FS, out string) (names []string, contents [][]byte) {
	t.Helper()
	infos, err := f.List(out)
	if err != nil {
		t.Fatal(err)
	}
	success := false
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_SUCCESS":
			success = true
		case strings.HasPrefix(name, "part-"):
			names = append(names, name)
			contents = append(contents, read(t, f, info.Name))
		default:
			t.Errorf("%s holds %s", out, name)
		}
	}
	if !success {
		t.Errorf("%s lacks _SUCCESS", out)
	}
	return names, contents
}

// same compares an output, the part files one after the other, with what is right.
func (p *place) same(out string, want []byte) {
	p.t.Helper()
	_, contents := parts(p.t, p.fs, out)
	compare(p.t, out, bytes.Join(contents, nil), want)
}

func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d bytes, want %d; from byte %d on they differ: %q, want %q", what, len(got), len(want), at, piece(got, at), piece(want, at))
}

func piece(b []byte, at int) []byte { return b[max(0, at-50):min(len(b), at+50)] }

// text makes about so many bytes of lines of words, some words often and most
// seldom, the same from run to run.
func text(size int) []byte {
	r := rand.New(rand.NewPCG(5, uint64(size)))
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

// wide makes so many bytes of lines of lineSize, few of them for their size.
func wide(size int) []byte {
	b := bytes.Repeat([]byte{'.'}, size)
	for at := 0; at < size; at += lineSize {
		copy(b[at:], fmt.Sprintf("%09d", at))
		b[min(at+lineSize, size)-1] = '\n'
	}
	return b
}

const lineSize = 1 << 10

// counted is the oracle of word counts: what a single process would count.
func counted(text []byte) []byte {
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

// sortedLines puts lines in order.
func sortedLines(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, nil)
}
