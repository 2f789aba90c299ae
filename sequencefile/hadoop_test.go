package sequencefile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordSet is a set of records in testdata/records.txt.
type recordSet struct {
	keyClass, valueClass string
	records              []string // key and value in hex, each after an x
}

func recordSets(t *testing.T) map[string]*recordSet {
	t.Helper()
	text, err := os.ReadFile("testdata/records.txt")
	if err != nil {
		t.Fatal(err)
	}
	sets := make(map[string]*recordSet)
	var set *recordSet
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] == "#" {
			set = &recordSet{keyClass: words[2], valueClass: words[3]}
			sets[words[1]] = set
		} else {
			set.records = append(set.records, strings.TrimSpace(line))
		}
	}
	return sets
}

func inHex(r Record) string { return fmt.Sprintf("x%x x%x", r.Key, r.Value) }

// rewritten reads a file and writes it again. groups are the numbers of records with one offset: of a block.
func rewritten(t *testing.T, file []byte) (header Header, records []string, groups []int, again []byte) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Header: r.Header, Sync: r.Sync, SyncInterval: 500, BlockSize: 800})
	if err != nil {
		t.Fatal(err)
	}
	offset := int64(-1)
	for record, err := range r.Records(0, math.MaxInt64) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Offset != offset {
			offset, groups = record.Offset, append(groups, 0)
		}
		groups[len(groups)-1]++
		records = append(records, inHex(record))
		if err := w.Append(record.Key, record.Value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return r.Header, records, groups, out.Bytes()
}

// TestHadoop: Hadoop's files have the recorded records, and the files that are written are those that Hadoop has
// read: without compression the same bytes, else the same records in each block. If another version of a
// library writes other bytes, go run ./integration/compat -rewrite -only files asks Hadoop again.
func TestHadoop(t *testing.T) {
	sums, err := os.ReadFile("testdata/written.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/hadoop/*.seq")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	sets := recordSets(t)
	for _, name := range names {
		base := filepath.Base(name)
		words := strings.Split(strings.TrimSuffix(base, ".seq"), "-")
		set := sets[words[0]]
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		header, records, groups, again := rewritten(t, file)
		if header.KeyClass != set.keyClass || header.ValueClass != set.valueClass || !strings.EqualFold(header.Compression.String(), words[1]) ||
			len(words) > 2 && header.Codec.Suffix != "."+words[2] || !maps.Equal(header.Metadata, map[string]string{"writer": "Hadoop", "empty": ""}) {
			t.Errorf("%s: header %+v", base, header)
		}
		if !slices.Equal(records, set.records) {
			t.Errorf("%s: %d records, want %d", base, len(records), len(set.records))
		}
		if _, _, ours, _ := rewritten(t, again); !slices.Equal(ours, groups) || words[1] == "none" && !bytes.Equal(again, file) {
			t.Errorf("%s: written again it has blocks of %v records, want %v", base, ours, groups)
		}
		if line := fmt.Sprintf("\n%s %x\n", base, sha256.Sum256(again)); !strings.Contains(string(sums), line) {
			t.Errorf("the file that is written for %s is not the recorded one, which Hadoop has read", base)
		}
	}
}

// TestHadoopSplits: pieces of Hadoop's files have the records of Hadoop's splits.
func TestHadoopSplits(t *testing.T) {
	text, err := os.ReadFile("testdata/splits.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(text)) {
		var name string
		var size int64
		if n, _ := fmt.Sscanf(line, "sequence %s %d", &name, &size); n != 2 {
			continue
		}
		file, err := os.ReadFile("testdata/hadoop/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("sequence %s %d", name, size)
		for from := int64(0); from < int64(len(file)); from += size {
			sum, n := sha256.New(), 0
			for record, err := range r.Records(from, from+size) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(sum, inHex(record))
				n++
			}
			got += fmt.Sprintf(" %d:%x", n, sum.Sum(nil)[:8])
		}
		r.Close()
		if compared++; got != strings.TrimSpace(line) {
			t.Errorf("got  %s\nwant %s", got, line)
		}
	}
	if compared < 10 {
		t.Errorf("compared %d lines", compared)
	}
}
