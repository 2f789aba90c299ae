package compression

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hadoopLines is the content of Hadoop's files, as HadoopFiles.java makes it.
func hadoopLines(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "line %d\n", i*i%97)
	}
	return b.Bytes()[:size]
}

// TestHadoop: Hadoop's files are read, and the files that are written are those that Hadoop has read. If another
// version of a library writes other bytes, go run ./integration/compat -rewrite -only files asks Hadoop again.
func TestHadoop(t *testing.T) {
	sums, err := os.ReadFile("testdata/written.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/hadoop/*")
	if err != nil || len(names) < 15 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		base, suffix, _ := strings.Cut(filepath.Base(name), ".")
		size := map[string]int{"lines": 5000, "long": 600_000, "onewrite": 600_000}[base]
		if base == "long" && suffix == "bz2" {
			size = 2_000_000
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		codec := OfFile(name)
		r := codec.NewReader()
		if got, err := unpacked(r, file); err != nil || !bytes.Equal(got, hadoopLines(size)) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), size, err)
		}
		twice := append(file, file...)
		if got, err := unpacked(r, twice); err != nil || len(got) != 2*size {
			t.Errorf("%s twice: %d bytes, %v", name, len(got), err)
		}
		r.Close()
		var ours bytes.Buffer
		w, err := codec.NewWriter(&ours)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(hadoopLines(size)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("\n%s %x\n", filepath.Base(name), sha256.Sum256(ours.Bytes())); !strings.Contains(string(sums), line) {
			t.Errorf("the file that is written for %s is not the recorded one, which Hadoop has read", filepath.Base(name))
		}
	}
}
