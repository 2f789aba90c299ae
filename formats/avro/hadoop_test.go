package avro

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/avrofile"
	"github.com/quernmr/quern/formats/internal/recorded"
	"github.com/quernmr/quern/mapreduce"
)

// keyValue is a record of Hadoop's AvroKeyValueOutputFormat.
type keyValue struct {
	Key   string `avro:"key"`
	Value int64  `avro:"value"`
}

var keyValueSchema = MustParse(`{"type": "record", "name": "KeyValuePair", "namespace": "org.apache.avro.mapreduce", "doc": "A key/value pair",
	"fields": [{"name": "key", "type": "string", "doc": "The key"}, {"name": "value", "type": "long", "doc": "The value"}]}`)

// counted counts the words of lines in Avro files.
func counted() *mapreduce.Job {
	job := recorded.Words(Input[string](nil), func(line string) string { return line }).Job("words")
	job.Format = Output(keyValueSchema, func(word string, n int64) keyValue { return keyValue{word, n} })
	return job
}

// sorted sorts the lines of Avro files.
func sorted() *mapreduce.Job {
	lines := mapreduce.Map(Input[string](nil), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
	job := mapreduce.Sort(lines).Job("sort")
	job.Format = Output(MustParse(`"string"`), func(line string, _ struct{}) string { return line })
	return job
}

// TestHadoopJobs compares part files of word counts and sorts, record for record, with those of Hadoop's local
// runner, which `make compat` records in testdata/jobs.txt.
func TestHadoopJobs(t *testing.T) {
	recorded.Compare(t, "in.avro", map[string]func() *mapreduce.Job{"words": counted, "sort": sorted}, fileText)
}

// fileText returns a file's name, schema, codec and records as testdata/jobs.txt has them.
func fileText(t *testing.T, name, file string) string {
	t.Helper()
	r, err := avrofile.NewReader(strings.NewReader(file), int64(len(file)), avrofile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root := r.Schema.Root()
	schema := root.Type
	if root.Name != "" {
		schema = root.Namespace + "." + root.Name
	}
	var b strings.Builder
	fmt.Fprintln(&b, "file", name, schema, cmp.Or(r.Codec, "null"))
	for record, err := range avrofile.Records[any](r, nil, 0, int64(len(file))) {
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := r.Schema.Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "x%x\n", encoded)
	}
	return b.String()
}
