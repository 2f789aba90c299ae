package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// TestStreamingSequences: commands read SequenceFiles, whatever splits they have, beside text.
func TestStreamingSequences(t *testing.T) {
	dir := t.TempDir()
	var file bytes.Buffer
	w, err := sequencefile.NewWriter(&file, sequencefile.Options{Header: sequencefile.Header{KeyClass: writable.Text.Name, ValueClass: writable.Long.Name}, SyncInterval: 100})
	if err != nil {
		t.Fatal(err)
	}
	var lines, hex string
	for i := range 50 {
		key, _ := writable.Text.Append(nil, fmt.Sprintf("k%02d", i))
		value, _ := writable.Long.Append(nil, int64(-i))
		if err := w.Append(key, value); err != nil {
			t.Fatal(err)
		}
		lines += fmt.Sprintf("k%02d\t%d\n", i, -i)
		hex += fmt.Sprintf("07000000036b%x04%016x", fmt.Sprintf("%02d", i), uint64(-i))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sequence/a"), file.String())
	write(t, filepath.Join(dir, "both/a"), file.String())
	write(t, filepath.Join(dir, "both/b"), "text\n")
	const one, many = "1000000", "200"
	for _, c := range []struct{ format, input, form, split, mapper, reducer, want string }{
		{"SequenceFileInputFormat", "sequence", "text", many, "cat", "cat", lines},
		{"org.apache.hadoop.mapred.SequenceFileAsTextInputFormat", "sequence", "text", many, "cat", "cat", lines},
		{"SequenceFileAsTextInputFormat", "sequence", "text", many, "org.apache.hadoop.mapred.lib.IdentityMapper", "cat", lines},
		{"SequenceFileInputFormat", "sequence", "typedbytes", one, `sh -c "od -An -v -tx1 | tr -dc 0-9a-f"`, "cat", hex},
		{"AutoInputFormat", "both", "text", one, "cat", "cat", "0\ttext\n" + lines},
	} {
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		code, stderr := streamed(t, dir, "-quiet", "-D", "stream.map.input="+c.form, "-D", "mapreduce.input.fileinputformat.split.maxsize="+c.split,
			"-input", c.input, "-inputformat", c.format, "-output", "out", "-mapper", c.mapper, "-reducer", c.reducer)
		checkStreamed(t, code, stderr, nil)
		got, err := os.ReadFile(filepath.Join(dir, "out/part-00000"))
		if text := strings.TrimSuffix(string(got), "\t\n"); err != nil || text != strings.TrimSuffix(c.want, "\t\n") {
			t.Errorf("%s as %s: %v, got\n%swant\n%s", c.format, c.form, err, got, c.want)
		}
	}
	write(t, filepath.Join(dir, "damaged"), file.String()[:file.Len()-3])
	for _, input := range []string{"damaged", "both/b"} {
		code, stderr := streamed(t, dir, "-quiet", "-input", input, "-inputformat", "SequenceFileInputFormat", "-output", "failed", "-mapper", "cat", "-reducer", "NONE")
		checkStreamed(t, code, stderr, []string{input, "SequenceFile at offset"})
	}
}
