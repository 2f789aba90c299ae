package avro

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/avrofile"
	"github.com/quernmr/quern/formats/internal/failed"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

type point struct {
	Name  string            `avro:"name"`
	X     int64             `avro:"x"`
	Label *string           `avro:"label"`
	Attrs map[string][]byte `avro:"attrs"`
}

var pointSchema = MustParse(`{"type": "record", "name": "Point", "fields": [{"name": "name", "type": "string"}, {"name": "x", "type": "long"},
	{"name": "label", "type": ["null", "string"]}, {"name": "attrs", "type": {"type": "map", "values": "bytes"}}]}`)

func points(n int) (all []point) {
	for i := range n {
		p := point{Name: fmt.Sprintf("point %03d", i), X: int64(i * i), Attrs: map[string][]byte{"i": fmt.Append(nil, i)}}
		if i%3 == 0 {
			p.Label = &p.Name
		}
		all = append(all, p)
	}
	return all
}

func file[R any](t *testing.T, schema *Schema, o avrofile.Options, records []R) string {
	t.Helper()
	var b strings.Builder
	w, err := avrofile.NewWriter(&b, schema, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Encode(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// show returns the records of files as sorted lines, and the last file's reader.
func show[R any](t *testing.T, files ...string) (lines []string, r *avrofile.Reader) {
	t.Helper()
	for _, f := range files {
		var err error
		if r, err = avrofile.NewReader(strings.NewReader(f), int64(len(f)), avrofile.Limits{}); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for record, err := range avrofile.Records[R](r, nil, 0, int64(len(f))) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line(record))
		}
	}
	slices.Sort(lines)
	return lines, r
}

func line(record any) string {
	if p, ok := record.(point); ok && p.Label != nil {
		return fmt.Sprint(p.Name, p.X, *p.Label, p.Attrs)
	}
	return fmt.Sprint(record)
}

// copied is a job that copies points.
func copied(properties map[string]string) (*mapreduce.Job, *Format[string, mapreduce.Pair[int64, string], point]) {
	pairs := mapreduce.Map(Input[point](nil), func(_ *mapreduce.Task, p point, emit func(string, mapreduce.Pair[int64, string])) error {
		label := "none"
		if p.Label != nil {
			label = "some " + *p.Label
		}
		emit(p.Name, mapreduce.PairOf(p.X, label+"/"+string(p.Attrs["i"])))
		return nil
	})
	job := mapreduce.Sort(pairs).Job("copy")
	format := Output(pointSchema, func(name string, rest mapreduce.Pair[int64, string]) point {
		label, i, _ := strings.Cut(rest.B, "/")
		p := point{Name: name, X: rest.A, Attrs: map[string][]byte{"i": []byte(i)}}
		if of, some := strings.CutPrefix(label, "some "); some {
			p.Label = &of
		}
		return p
	})
	job.Format, job.Properties = format, properties
	return job, format
}

// TestCopy: a job reads files of each codec in splits, and writes the same records by each codec.
func TestCopy(t *testing.T) {
	want := points(60)
	var lines []string
	for _, p := range want {
		lines = append(lines, line(p))
	}
	slices.Sort(lines)
	for _, codec := range avrofile.Codecs() {
		t.Run(codec, func(t *testing.T) {
			job, format := copied(map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "700", "mapreduce.job.reduces": "2",
				"mapreduce.output.fileoutputformat.compress": "true", "avro.output.codec": codec, "avro.mapred.sync.interval": "500"})
			format.Metadata = map[string]string{"writer": "Quern"}
			input := file(t, pointSchema, avrofile.Options{Codec: codec, BlockSize: 300}, want)
			out := mrtest.RunFiles(t, job, map[string]string{"a.avro": input})
			got, r := show[point](t, out.Files["part-r-00000.avro"], out.Files["part-r-00001.avro"])
			if !slices.Equal(got, lines) {
				t.Errorf("%d records, want %d", len(got), len(lines))
			}
			if r.Codec != codec || string(r.Metadata["writer"]) != "Quern" || r.Schema.String() != pointSchema.String() {
				t.Errorf("codec %s, metadata %q", r.Codec, r.Metadata)
			}
			if n := strings.Count(out.Files["part-r-00001.avro"], string(r.Sync[:])); n < 3 {
				t.Errorf("%d sync marks with blocks of 500 bytes", n)
			}
		})
	}
}

// TestResolved: records of older files get the program's schema, and types other than structs work.
func TestResolved(t *testing.T) {
	type older struct {
		X int32 `avro:"x"`
	}
	olderSchema := MustParse(`{"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}`)
	newer := MustParse(`{"type": "record", "name": "Point", "fields": [{"name": "name", "type": "string", "default": "none"}, {"name": "x", "type": "long"}]}`)
	input := map[string]string{"a": file(t, olderSchema, avrofile.Options{}, []older{{7}, {-1}})}
	fields := mapreduce.Map(Input[map[string]any](newer), func(_ *mapreduce.Task, p map[string]any, emit func(int64, string)) error {
		emit(p["x"].(int64), p["name"].(string))
		return nil
	})
	if got := mrtest.RunFiles(t, mapreduce.Sort(fields).Job("x"), input).Text(); got != "-1\tnone\n7\tnone\n" {
		t.Errorf("got %q", got)
	}
}

// TestOptions: the properties of Hadoop and Avro choose codec, level and block size.
func TestOptions(t *testing.T) {
	defaults := map[string]string{compress: "false", compressCodec: "org.apache.hadoop.io.compress.DefaultCodec", deflateLevel: "-1", zstdLevel: "3", syncInterval: "64000"}
	for given, want := range map[string]string{
		"":                      " level -1 block 64000",
		outputCodec + "=snappy": " level -1 block 64000",
		compress + "=true":      "deflate level -1 block 64000",
		compress + "=true " + deflateLevel + "=9 " + syncInterval + "=100":   "deflate level 9 block 100",
		compress + "=true " + outputCodec + "=null":                          "null level -1 block 64000",
		compress + "=true " + outputCodec + "=zstandard " + zstdLevel + "=7": "zstandard level 7 block 64000",
		compress + "=true " + compressCodec + "=GzipCodec":                   "deflate level -1 block 64000",
		compress + "=true " + compressCodec + "=SnappyCodec":                 "snappy level -1 block 64000",
		compress + "=true " + compressCodec + "=BZip2Codec":                  "bzip2 level -1 block 64000",
		compress + "=true " + compressCodec + "=ZStandardCodec":              "zstandard level 3 block 64000",
		compress + "=true " + compressCodec + "=Lz4Codec":                    "error: Avro files have no codec lz4; set avro.output.codec to one of null, deflate",
		compress + "=true " + compressCodec + "=x.Y":                         `error: unknown codec "x.Y"`,
		syncInterval + "=64k":                        `error: property avro.mapred.sync.interval="64k" is not a whole number`,
		compress + "=true " + deflateLevel + "=best": `error: property avro.mapred.deflate.level="best" is not a whole number`,
	} {
		properties := maps.Clone(defaults)
		for _, p := range strings.Fields(given) {
			name, value, _ := strings.Cut(p, "=")
			properties[name] = value
		}
		o, err := options(func(name string) string { return properties[name] })
		got := fmt.Sprintf("%s level %d block %d", o.Codec, o.Level, o.BlockSize)
		if reason, bad := strings.CutPrefix(want, "error: "); bad && (err == nil || !strings.Contains(err.Error(), reason)) || !bad && (got != want || err != nil) {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
}

// TestRefused: other files, schemas, codecs and types are refused with words that help.
func TestRefused(t *testing.T) {
	good := file(t, pointSchema, avrofile.Options{Codec: "snappy", BlockSize: 300}, points(60))
	copying := func(properties map[string]string) *mapreduce.Job {
		job, _ := copied(properties)
		return job
	}
	emitting := func(format mapreduce.Format) *mapreduce.Job {
		job := mapreduce.Sort(mapreduce.Map(Input[point](nil), func(_ *mapreduce.Task, p point, emit func(string, int)) error {
			emit(p.Name, int(p.X))
			return nil
		})).Job("x")
		job.Format, job.Properties = format, map[string]string{"mapreduce.reduce.maxattempts": "1"}
		return job
	}
	resolving := mapreduce.Map(Input[point](MustParse(`{"type": "record", "name": "Point", "fields": [{"name": "y", "type": "long"}]}`)),
		func(_ *mapreduce.Task, p point, emit func(string, int)) error { return nil })
	other := mapreduce.Map(Input[struct{ Name int }](nil), func(_ *mapreduce.Task, p struct{ Name int }, emit func(string, int)) error { return nil })
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a.avro", 0o777); err != nil {
		t.Fatal(err)
	}
	nested := mapreduce.Map(Input[point](nil, dir), func(_ *mapreduce.Task, p point, emit func(string, int)) error { return nil })
	for name, c := range map[string]struct {
		job   *mapreduce.Job
		files map[string]string
		words []string
	}{
		"text":        {copying(nil), map[string]string{"a": "a line of text\n"}, []string{"/a: bad input: Avro file at offset 0", "not an Avro file", `begins with "a li"`}},
		"truncated":   {copying(nil), map[string]string{"a": good[:1000]}, []string{"/a: bad input: Avro file at offset", "ends too early"}},
		"codec":       {copying(nil), map[string]string{"a": strings.Replace(good, "\x0csnappy", "\x04xz", 1)}, []string{"/a: bad input: Avro file at offset 0", `unknown codec "xz"; there are null`}},
		"type":        {mapreduce.Sort(other).Job("x"), map[string]string{"a": good}, []string{"/a: bad input: Avro file at offset", "record 0", "missing field name"}},
		"schema":      {mapreduce.Sort(resolving).Job("x"), map[string]string{"a": good}, []string{"/a: bad input: Avro file at offset 0", "does not match the program's", "y"}},
		"directory":   {mapreduce.Sort(nested).Job("x"), nil, []string{dir + "/a.avro", "director"}},
		"no schema":   {emitting(Output(nil, func(word string, n int) int { return n })), map[string]string{"a": good}, []string{"derive the schema of the output"}},
		"wrong types": {emitting(Output(nil, func(word string, n int64) point { return point{} })), map[string]string{"a": good}, []string{"format avro", "does not write records of string and int"}},
		"metadata":    {emitting(reserved()), map[string]string{"a": good}, []string{`"avro.x" is reserved`}},
		"xz":          {copying(map[string]string{outputCodec: "xz"}), map[string]string{"a": good}, []string{"avro.output.codec", "null, deflate, snappy, zstandard, bzip2"}},
		"property":    {copying(map[string]string{"avro.schema.output.key": "{}"}), map[string]string{"a": good}, []string{"avro.schema.output.key", "formats/avro"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := failed.Run(t, c.job, c.files)
			for _, word := range c.words {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
		})
	}
}

func reserved() mapreduce.Format {
	f := Output(nil, func(word string, n int) point { return point{} })
	f.Metadata = map[string]string{"avro.x": ""}
	return f
}

// TestCheck: files of a map-only job are the same for each run of the map, so that quern.check finds no difference.
func TestCheck(t *testing.T) {
	job := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		emit(line, 1)
		return nil
	})).Job("check")
	job.Format = Output(pointSchema, func(name string, x int64) point {
		return point{Name: name, X: x, Attrs: map[string][]byte{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil, "f": nil}}
	})
	job.Properties = map[string]string{"quern.check": "true"}
	out := mrtest.RunFiles(t, job, map[string]string{"in": "a\nb\n"})
	if got, _ := show[point](t, out.Files["part-m-00000.avro"]); len(got) != 2 {
		t.Errorf("records %q", got)
	}
}
