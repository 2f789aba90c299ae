package shuffle

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLinksOfJobs: a job cannot make its task tracker read or write a file outside of the job's directory, by a link
// in place of a file or of its directory. A pipe in place of a file is refused, too, and nothing waits for it.
func TestLinksOfJobs(t *testing.T) {
	top := t.TempDir()
	own, other := filepath.Join(top, "job_1/a"), filepath.Join(top, "job_2/a")
	for _, dir := range []string{own, other} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/output", []byte("secret"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, wantOK bool) {
		t.Helper()
		for how, open := range map[string]func(string) (*os.File, error){"read": OpenFile, "write": CreateFile} {
			f, err := open(name)
			if (err == nil) != wantOK {
				t.Errorf("%s %s: %v", how, name, err)
			}
			if err == nil {
				f.Close()
			}
		}
	}
	link := func(target, name string) string {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	check(own+"/output", true)
	check(link(other+"/output", own+"/absolute"), false)
	check(link("../../job_2/a/output", own+"/relative"), false)
	check(link("output", own+"/inside"), true)
	link(other, filepath.Join(top, "job_1/b"))
	check(filepath.Join(top, "job_1/b/output"), false)
	if err := syscall.Mkfifo(own+"/pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	check(own+"/pipe", false)
	if text, _ := os.ReadFile(other + "/output"); string(text) != "secret" {
		t.Errorf("the file of the other job has %q", text)
	}
}
