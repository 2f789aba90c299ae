package mapreduce_test

import (
	"archive/zip"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestArchives: a map reads a file of an unpacked archive, and one of a directory below a directory.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(dir + "/words.zip")
	if err != nil {
		t.Fatal(err)
	}
	packed := zip.NewWriter(file)
	member, err := packed.Create("en/list")
	if err == nil {
		_, err = member.Write([]byte("packed"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/tree/sub", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/tree/sub/list", []byte("plain"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
		read := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, string)) error {
			name, below, _ := strings.Cut(line, " ")
			dir, err := t.Directory(name)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(dir + "/" + below)
			emit(name, string(text))
			return err
		}))
		job := read.Job("read")
		job.Archives = map[string]string{"words": dir + "/words.zip", "tree": dir + "/tree"}
		return job, nil
	}), map[string]string{"in": "words en/list\ntree sub/list\n"})
	if got, want := out.Text(), "words\tpacked\ntree\tplain\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
