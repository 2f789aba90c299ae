package sequence_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/formats/internal/failed"
	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// copied is a job that copies SequenceFiles.
func copied[K, V any](key writable.Class[K], value writable.Class[V], properties map[string]string) *mapreduce.Job {
	pairs := mapreduce.Map(sequence.Input(key, value), func(_ *mapreduce.Task, rec mapreduce.Pair[K, V], emit func(K, V)) error {
		emit(rec.A, rec.B)
		return nil
	})
	job := mapreduce.Sort(pairs).Job("copy")
	job.Format, job.Properties = sequence.Output(key, value), properties
	return job
}

func hadoopFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../sequencefile/testdata/hadoop/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// records returns the records of a file, sorted, and its header.
func records(t *testing.T, file string) (all []string, h sequencefile.Header) {
	t.Helper()
	r, err := sequencefile.NewReader(strings.NewReader(file), int64(len(file)), sequencefile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for record, err := range r.Records(0, math.MaxInt64) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%x %x", record.Key, record.Value))
	}
	slices.Sort(all)
	return all, r.Header
}

// TestCopy: a job reads Hadoop's files in splits of any size, and writes files with the same classes and records.
func TestCopy(t *testing.T) {
	for name, properties := range map[string]map[string]string{
		"texts-none.seq":          nil,
		"texts-record-lz4.seq":    {"mapreduce.output.fileoutputformat.compress": "true"},
		"texts-block-deflate.seq": {"mapreduce.output.fileoutputformat.compress": "true", "mapreduce.output.fileoutputformat.compress.type": "BLOCK", "mapreduce.output.fileoutputformat.compress.codec": "GzipCodec", "io.seqfile.compress.blocksize": "700"},
		"texts-block-bz2.seq":     {"mapreduce.output.fileoutputformat.compress": "true", "mapreduce.output.fileoutputformat.compress.type": "NONE"},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "400", "mapreduce.job.reduces": "2"}
			for k, v := range properties {
				all[k] = v
			}
			out := mrtest.RunFiles(t, copied(writable.Text, writable.Text, all), map[string]string{"a": hadoopFile(t, name)})
			want, _ := records(t, hadoopFile(t, name))
			var got []string
			for _, part := range []string{"part-r-00000", "part-r-00001"} {
				of, h := records(t, out.Files[part])
				got = append(got, of...)
				if h.KeyClass != writable.Text.Name || h.ValueClass != writable.Text.Name || (h.Codec != nil) != (h.Compression != sequencefile.None) {
					t.Errorf("%s: header %+v", part, h)
				}
				compression := properties["mapreduce.output.fileoutputformat.compress.type"]
				if compression == "" {
					compression = map[bool]string{true: "RECORD", false: "NONE"}[properties != nil]
				}
				if h.Compression.String() != compression || compression == "BLOCK" && h.Codec.Name != "gzip" {
					t.Errorf("%s: compression %v by %+v, want %s", part, h.Compression, h.Codec, compression)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
		})
	}
}

// TestClasses: the Go types of other classes, also of maps, arrays and classes that this program does not know.
func TestClasses(t *testing.T) {
	check := func(name string, job *mapreduce.Job) {
		t.Helper()
		out := mrtest.RunFiles(t, job, map[string]string{"a": hadoopFile(t, name)})
		want, of := records(t, hadoopFile(t, name))
		if got, h := records(t, out.Files["part-r-00000"]); !slices.Equal(got, want) || h.KeyClass != of.KeyClass || h.ValueClass != of.ValueClass {
			t.Errorf("%s: records %v of %+v, want %v", name, got, h, want)
		}
	}
	check("longs-block-deflate.seq", copied(writable.Long, writable.Bytes, nil))
	check("ints-none.seq", copied(writable.Int, writable.Double, nil))
	check("vints-record-deflate.seq", copied(writable.VInt, writable.VLong, nil))
	check("nulls-block-snappy.seq", copied(writable.Null, writable.Float, nil))
	check("bytes-none.seq", copied(writable.Byte, writable.Boolean, nil))
	raw := writable.Raw("HadoopFiles$Ints")
	check("arrays-none.seq", copied(writable.Short, raw, nil))
}

// TestRefused: another class, a damaged file and a format for other types are refused with words that help.
func TestRefused(t *testing.T) {
	file := hadoopFile(t, "longs-none.seq")
	for name, c := range map[string]struct {
		input string
		words []string
	}{
		"class":     {file, []string{"org.apache.hadoop.io.LongWritable and its values org.apache.hadoop.io.BytesWritable", "reads org.apache.hadoop.io.Text and org.apache.hadoop.io.Text"}},
		"text":      {"a line of text\n", []string{"not a SequenceFile", `begins with "a li"`, "offset 0"}},
		"truncated": {hadoopFile(t, "texts-none.seq")[:1000], []string{"ends too early"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := failed.Run(t, copied(writable.Text, writable.Text, nil), map[string]string{"a": c.input})
			for _, word := range append(c.words, "/a") {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
		})
	}
	lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int)) error { return nil })
	job := mapreduce.Sort(lines).Job("x")
	job.Format = sequence.Output(writable.Text, writable.Long)
	if err := failed.Run(t, job, map[string]string{"a": ""}); err == nil || !strings.Contains(err.Error(), "format sequencefile (*sequence.Format[string,int64]) does not write records of string and int") {
		t.Errorf("a format of other types: %v", err)
	}
}

// TestCheck: files of a map-only job are the same for each run of the map, so that quern.check finds no difference.
func TestCheck(t *testing.T) {
	job := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		emit(line, 1)
		return nil
	})).Job("check")
	job.Format, job.Properties = sequence.Output(writable.Text, writable.Long), map[string]string{"quern.check": "true"}
	out := mrtest.RunFiles(t, job, map[string]string{"in": "a\nb\n"})
	if got, _ := records(t, out.Files["part-m-00000"]); len(got) != 2 {
		t.Errorf("records %q", got)
	}
}
