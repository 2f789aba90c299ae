package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

func testOutputs(codec *compression.Codec) *outputs {
	f := mem.New(1 << 20)
	if err := f.MkdirAll("mem://t/a"); err != nil {
		panic(err)
	}
	return &outputs{fs: f, dir: "mem://t/a", made: true, task: wire.TaskID{Kind: wire.Reduce, N: 7}, codec: codec, pulse: new(pulse), files: map[string]*Output{}}
}

// TestCompressedOutput: an output has the suffix of its codec, and its content is what was written, also
// if that is nothing.
func TestCompressedOutput(t *testing.T) {
	for _, codec := range append(compression.Codecs(), nil) {
		o := testOutputs(codec)
		out := must(o.open("more"))
		var want strings.Builder
		for i := range 50_000 {
			record := fmt.Sprintf("record %d\n", i)
			want.WriteString(record)
			if err := out.Write([]byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
		suffix := ""
		if codec != nil {
			suffix = codec.Suffix
		}
		for name, want := range map[string]string{"more": want.String(), "part": ""} {
			stored := must(readAll(o.fs, "mem://t/a/"+name+"-r-00007"+suffix, 1<<30))
			got := stored
			if codec != nil {
				r := codec.NewReader()
				r.Reset(bytes.NewReader(stored), compression.Whole)
				got = must(io.ReadAll(r))
			}
			if string(got) != want || codec != nil && len(want) > 0 && len(stored) > len(want)/2 || o.files[name].file.size != int64(len(stored)) {
				t.Errorf("%s%s: %d bytes, stored in %d, want %d", name, suffix, len(got), len(stored), len(want))
			}
		}
	}
}

// TestContainer: a container writes the file itself, without the job's codec. Its first error is final.
func TestContainer(t *testing.T) {
	codec, _ := compression.Named("gzip")
	for _, failing := range []string{"", "begin", "record", "end"} {
		o := testOutputs(codec)
		broken := errors.New("odd record")
		fails := func(step string) error {
			if step == failing {
				return broken
			}
			return nil
		}
		task := &Task{outputs: o}
		var file io.Writer
		out, err := task.Container("", ".box", func(w io.Writer) (func() error, error) {
			file = w
			must(io.WriteString(w, "head "))
			return func() error {
				must(io.WriteString(w, "foot"))
				return fails("end")
			}, fails("begin")
		})
		if errors.Is(err, broken) != (failing == "begin") {
			t.Errorf("failing %s: %v", failing, err)
		}
		must(io.WriteString(file, "body "))
		if err := out.Counted(fails("record")); errors.Is(err, broken) != (failing == "begin" || failing == "record") {
			t.Errorf("failing %s: a record: %v", failing, err)
		}
		err = o.close()
		if errors.Is(err, broken) != (failing != "") {
			t.Errorf("failing %s: the end: %v", failing, err)
		}
		if failing != "" {
			if err := o.abort(); err != nil {
				t.Error(err)
			}
			continue
		}
		if got := must(readAll(o.fs, "mem://t/a/part-r-00007.box", 100)); string(got) != "head body foot" || out.records != 1 {
			t.Errorf("%q with %d records", got, out.records)
		}
	}
	if _, err := (&Task{}).Container("", "", nil); err == nil || !strings.Contains(err.Error(), "when the job has reduces") {
		t.Errorf("a map of a job with reduces: %v", err)
	}
}

// TestLazyOutput: outputs without records leave no files, whether they are bytes or containers.
func TestLazyOutput(t *testing.T) {
	for _, lazy := range []bool{true, false} {
		o := testOutputs(nil)
		o.lazy = lazy
		if err := must(o.open("some")).Write([]byte("record\n")); err != nil {
			t.Fatal(err)
		}
		must(o.open("none"))
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
		want := "some-r-00007"
		if !lazy {
			want = "none-r-00007 part-r-00007 some-r-00007"
		}
		var files, counted []string
		for _, info := range must(o.fs.List("mem://t/a")) {
			files = append(files, info.Name)
		}
		for _, out := range o.sorted() {
			counted = append(counted, out.name)
		}
		if strings.ReplaceAll(strings.Join(files, " "), "mem://t/a/", "") != want || strings.Join(counted, " ") != want {
			t.Errorf("lazy %v: files %v, in the manifest %v, want %s", lazy, files, counted, want)
		}
	}
}
