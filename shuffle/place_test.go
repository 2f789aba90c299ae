package shuffle

import (
	"errors"
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

// TestMakeAndReplaceInJob: what a task tracker makes, replaces and removes for a job stays in the job's directory, too.
func TestMakeAndReplaceInJob(t *testing.T) {
	top := t.TempDir()
	job, other := filepath.Join(top, "job_1"), filepath.Join(top, "job_2")
	if err := errors.Join(MakeDir(job, "a/work"), MakeDir(job, "a/work"), MakeDir(other, "a"), os.WriteFile(other+"/a/report", []byte("old"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("../job_2/a", job+"/b"), os.Symlink(other, job+"/a/c"), os.WriteFile(job+"/file", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b/work", "a/c", "a/c/work", "file", "../job_2/work"} {
		if err := MakeDir(job, name); err == nil {
			t.Errorf("the directory %s is made", name)
		}
	}
	if err := ReplaceFile(job+"/a/report", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(job + "/a/report"); string(text) != "new" {
		t.Errorf("the report is %q, %v", text, err)
	}
	if err := ReplaceFile(job+"/b/report", []byte("new")); err == nil {
		t.Error("a file is replaced through a link")
	}
	if err := removeFile(job + "/b/report"); err == nil {
		t.Error("a file is removed through a link")
	}
	if err := removeFile(job + "/a/report"); err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(other + "/a")
	if text, _ := os.ReadFile(other + "/a/report"); string(text) != "old" || len(entries) != 1 {
		t.Errorf("the other job has %q and %d files", text, len(entries))
	}
}

// TestFilesOfOwner: files that a task tracker of root makes for a job belong to the owner of the job's directory.
func TestFilesOfOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
	job := filepath.Join(t.TempDir(), "job_1")
	if err := errors.Join(os.Mkdir(job, 0o700), os.Chown(job, 23001, 23002), MakeDir(job, "a/work"), ReplaceFile(job+"/a/report", nil)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/work", "a/report"} {
		info, err := os.Stat(filepath.Join(job, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 23001 || st.Gid != 23002 {
			t.Errorf("%s belongs to user %d and group %d", name, st.Uid, st.Gid)
		}
	}
}
