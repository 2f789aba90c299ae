package fsshell

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/dfstest"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
)

// withTrash returns a function that runs a command over local files, with a home directory and an interval of the trash.
func withTrash(t *testing.T, at, interval string) func(args string) (stderr string, code int) {
	return func(args string) (string, int) {
		t.Helper()
		conf := func() (hdfs.Conf, error) { return hdfs.Conf{"fs.trash.interval": interval}, nil }
		var messages bytes.Buffer
		s := Shell{Program: "hadoop fs", Stdout: &messages, Stderr: &messages, Location: time.UTC,
			Files: dfs.Mux{"file": localFiles{local.New(), conf, func() (string, error) { return at, nil }}}}
		code, err := s.Run(t.Context(), strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		return messages.String(), code
	}
}

var stamp = regexp.MustCompile(`\d{13}`)

// fileTree returns the files below a directory with their content, a line each. A time at the end of a name is TIME.
func fileTree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		all.WriteString(stamp.ReplaceAllString(strings.TrimPrefix(name, dir), "TIME") + "=" + string(text) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestLocalTrash: with an interval, removed local files go to the trash of the home directory, as in Hadoop.
func TestLocalTrash(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	home := filepath.Join(top, "home")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("data/a", "1")
	run := withTrash(t, home, "1440")
	current := filepath.Join(home, ".Trash/Current")
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-rm data/a", 0, "rm: Moved: 'file:" + top + "/data/a' to trash at: file:" + current + top + "/data/a\n"},
		{"-rm -r file://" + top + "/data", 0, "rm: Moved: 'file:" + top + "/data' to trash at: "},
		{"-rm -skipTrash skipped", 0, "Deleted skipped\n"},
		{"-rm -r home", 1, "rm: Cannot move \"file:" + home + "\" to the trash, as it contains the trash. Consider using -skipTrash option\n"},
		{"-rm " + current + "/old", 0, "Deleted " + current + "/old\n"},
	} {
		write("data/b", "2")
		write("skipped", "3")
		write(current+"/old", "4")
		if stderr, code := run(c.args); code != c.code || !strings.HasPrefix(stderr, c.stderr) {
			t.Errorf("%s: exit code %d, %q", c.args, code, stderr)
		}
	}
	if got, want := fileTree(t, current+top), "/data/a=1\n/dataTIME/b=2\n"; got != want {
		t.Errorf("the trash has %q, want %q", got, want)
	}
	if info, err := os.Stat(current + top); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the trash: %v, %v", info, err)
	}
	if stderr, code := withTrash(t, home, "never")("-rm data/b"); code != 1 || !strings.Contains(stderr, `fs.trash.interval: "never"`) {
		t.Errorf("an interval that is none: exit code %d, %q", code, stderr)
	}
	if stderr, code := withTrash(t, home, "0")("-rm data/b"); code != 0 || stderr != "Deleted data/b\n" {
		t.Errorf("no trash: exit code %d, %q", code, stderr)
	}
	if stderr, code := run("-expunge"); code != 0 || stderr != "" {
		t.Errorf("-expunge: exit code %d, %q", code, stderr)
	}
	if all, err := os.ReadDir(filepath.Join(home, ".Trash")); err != nil || len(all) != 1 || all[0].Name() == "Current" {
		t.Errorf("after -expunge: %v, %v", all, err)
	}
	for _, name := range []string{"f", "f/x", "f/g/x", "f/g/x"} { // a file, then others below a directory of its name
		if err := os.RemoveAll("f"); err != nil {
			t.Fatal(err)
		}
		write(name, name)
		if stderr, code := run("-rm " + name); code != 0 || !strings.HasPrefix(stderr, "rm: Moved: ") {
			t.Errorf("-rm %s: exit code %d, %q", name, code, stderr)
		}
	}
	if got := fileTree(t, current+top); !strings.HasPrefix(got, "/f=f\n/fTIME/") || strings.Count(got, "=f/g/x\n") != 2 || strings.Count(got, "=f/x\n") != 1 {
		t.Errorf("the trash has %q", got)
	}
	if _, code := run("-expunge -immediate"); code != 0 || fileTree(t, home) != "" {
		t.Errorf("after -expunge -immediate: %q", fileTree(t, home))
	}
}

// TestOtherMount: -mv and -rm move local files to another mount, as -mv of Hadoop copies them there.
func TestOtherMount(t *testing.T) {
	here := t.TempDir()
	there := dfstest.OtherMount(t, here)
	t.Chdir(here)
	run := withTrash(t, filepath.Join(there, "home"), "60")
	for name, text := range map[string]string{"d/sub/a": "1", "d/b": "2", "c": "3"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"-mv d c " + there, "-mv " + there + "/c .", "-rm c"} {
		if stderr, code := run(args); code != 0 || strings.HasPrefix(args, "-mv") && stderr != "" {
			t.Errorf("%s: exit code %d, %q", args, code, stderr)
		}
	}
	if got, want := fileTree(t, there), "/d/b=2\n/d/sub/a=1\n/home/.Trash/Current"+here+"/c=3\n"; got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
	if got := fileTree(t, here); got != "" {
		t.Errorf("here is %q", got)
	}
}
