package avrofile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordSets returns the records of the sets in testdata/records.txt, in hex, each after an x.
func recordSets(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/records.txt")
	if err != nil {
		t.Fatal(err)
	}
	sets := make(map[string][]string)
	set := ""
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] == "#" {
			set = words[1]
		} else {
			sets[set] = append(sets[set], strings.TrimSpace(line))
		}
	}
	return sets
}

func open(t *testing.T, name string) *Reader {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata/java", name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// inHex returns the records of a piece, decoded and encoded again.
func inHex(t *testing.T, r *Reader, from, to int64) (lines []string, records []any) {
	t.Helper()
	for record, err := range Records[any](r, nil, from, to) {
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := r.Schema.Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		lines, records = append(lines, fmt.Sprintf("x%x", encoded)), append(records, record)
	}
	return lines, records
}

// TestJava: files of Java's Avro have the recorded records, and the files that are written are those that Java has
// read. If another version of a library writes other bytes, go run ./integration/compat -rewrite -only avro asks Java
// again.
func TestJava(t *testing.T) {
	sums, err := os.ReadFile("testdata/written.txt")
	if err != nil {
		t.Fatal(err)
	}
	sets, compared := recordSets(t), 0
	for set, want := range map[string][]string{"all": sets["all"], "pairs": sets["pairs"], "texts": sets["texts"], "empty": nil} {
		for _, codec := range Codecs() {
			name := set + "-" + codec + ".avro"
			r := open(t, name)
			got, records := inHex(t, r, 0, math.MaxInt64)
			if !slices.Equal(got, want) || (len(want) == 0) != (set == "empty") {
				t.Errorf("%s: %d records, want %d", name, len(got), len(want))
			}
			metadata := map[string]string{"writer": string(r.Metadata["writer"]), "empty": string(r.Metadata["empty"])}
			if r.Codec != codec || metadata["writer"] != "Java" {
				t.Errorf("%s: codec %s, metadata %q", name, r.Codec, r.Metadata)
			}
			again := write(r.Schema, Options{Codec: codec, Level: DefaultLevel, BlockSize: 500, Metadata: metadata}, records)
			if line := fmt.Sprintf("\n%s %x\n", name, sha256.Sum256(again)); !strings.Contains(string(sums), line) {
				t.Errorf("the file that is written for %s is not the recorded one, which Java has read", name)
			}
			compared++
		}
	}
	if compared != 20 {
		t.Errorf("compared %d files", compared)
	}
}

// TestJavaSplits: pieces of Java's files have the records of the splits of Avro's DataFileReader.
func TestJavaSplits(t *testing.T) {
	text, err := os.ReadFile("testdata/splits.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(text)) {
		var name string
		var size int64
		if n, _ := fmt.Sscanf(line, "%s %d", &name, &size); n != 2 {
			continue
		}
		r := open(t, name)
		got := fmt.Sprintf("%s %d", name, size)
		for from := int64(0); from < r.Size; from += size {
			sum := sha256.New()
			lines, _ := inHex(t, r, from, from+size)
			for _, record := range lines {
				fmt.Fprintln(sum, record)
			}
			got += fmt.Sprintf(" %d:%x", len(lines), sum.Sum(nil)[:8])
		}
		if compared++; got != strings.TrimSpace(line) {
			t.Errorf("got  %.200s\nwant %.200s", got, line)
		}
	}
	if compared < 15 {
		t.Errorf("compared %d lines", compared)
	}
}
