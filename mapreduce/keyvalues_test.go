package mapreduce_test

import (
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestKeyValuesOfHadoop compares keys and values of lines with those of Hadoop. The file explains its lines.
func TestKeyValuesOfHadoop(t *testing.T) {
	recorded, err := os.ReadFile("testdata/keyvalues.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(recorded)) {
		question, want, found := strings.Cut(strings.TrimSpace(line), " = ")
		if !found || line[0] == '#' {
			continue
		}
		if _, own, differs := strings.Cut(want, " ! "); differs {
			want = own
		}
		text, separator, _ := strings.Cut(question, " ")
		job := mapreduce.MapOnly(mapreduce.Map(mapreduce.KeyValues(), func(_ *mapreduce.Task, line mapreduce.Pair[string, string], emit func(string, struct{})) error {
			emit("["+line.A+"]["+line.B+"]", struct{}{})
			return nil
		})).Job("pairs")
		if separator != "-" {
			job.Properties = map[string]string{"mapreduce.input.keyvaluelinerecordreader.key.value.separator": separator}
		}
		out := mrtest.RunFiles(t, job, map[string]string{"in": strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\r`, "\r").Replace(text)})
		got := strings.NewReplacer("\n", "", "\t", `\t`, "\r", `\r`).Replace(out.Text())
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", question, got, want)
		}
		compared++
	}
	if compared < 6 {
		t.Errorf("compared %d texts", compared)
	}
}
