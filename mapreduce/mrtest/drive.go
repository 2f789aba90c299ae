package mrtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// Drive runs a program that drives jobs once, on a cluster in the test's process, with -input, a file with
// the given text, and -output, a directory. It returns the files in that directory by name. It fails the
// test if the driver returns an error. Unlike [Run] it does not vary the runs.
func Drive(t testing.TB, drive func(*mapreduce.Driver) error, input string, definitions ...mapreduce.Defined) *Output {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, inputName), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	s := bridge.Settings{Inputs: []string{in}, Output: out, Properties: map[string]string{"quern.embedded.dir": dir}}
	if err := mapreduce.RunInProcess(t.Context(), s, drive, definitions...); err != nil {
		t.Fatal(err)
	}
	written := &Output{Files: make(map[string]string)}
	err := filepath.WalkDir(out, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "_") {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(out, path) // both are absolute
		written.Files[name] = string(content)
		return err
	})
	if err != nil && !os.IsNotExist(err) { // a driver may write no files
		t.Fatal(err)
	}
	return written
}
