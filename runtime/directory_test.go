package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// tarFile returns a tar file of empty files, but for one with content.
func tarFile(names ...string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		must(0, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}))
		must(w.Write([]byte(name)))
	}
	must(0, w.Close())
	return out.Bytes()
}

// opens counts the files that are opened.
type opens struct {
	dfs.FS
	n atomic.Int32
}

func (o *opens) Open(name string) (dfs.File, error) {
	o.n.Add(1)
	return o.FS.Open(name)
}

// directoryTask is an attempt of a job on a task tracker that makes no links: the job has the copies in shared.
func directoryTask(f dfs.FS, work, shared string, files map[string]string, properties map[string]string) *Task {
	return &Task{Ctx: context.Background(), fs: f, work: work, dir: filepath.Join(filepath.Dir(shared), "attempt"), Plan: &wire.JobPlan{Files: files, Properties: properties}}
}

// sharingTask is an attempt of another job than all others. Its task tracker has linked the directory shared.
func sharingTask(t *testing.T, f dfs.FS, shared, archive string, properties map[string]string) *Task {
	dir := t.TempDir()
	must(0, os.Symlink(shared, filepath.Join(dir, SharedLink("d"))))
	return &Task{Ctx: context.Background(), fs: f, work: t.TempDir(), dir: dir, Plan: &wire.JobPlan{Files: map[string]string{"d/": archive}, Properties: properties}}
}

// versionDir returns the directory of the version that a task sees.
func versionDir(task *Task, name string) string {
	return must(task.versionOf(must(SideFiles(task.fs, name+"/", task.Plan.Files[name+"/"]))))
}

// TestDirectoryIsShared: many attempts get the same copy, which is made once, also after an attempt that was killed.
func TestDirectoryIsShared(t *testing.T) {
	files := mem.New(1 << 20)
	putFile(files, "mem://t/side/d.tar", tarFile("a", "b/c"))
	counted := &opens{FS: files}
	shared := filepath.Join(t.TempDir(), "shared")
	own := filepath.Join(shared, versionDir(sharingTask(t, files, shared, "mem://t/side/d.tar", nil), "d"))
	must(0, os.MkdirAll(filepath.Join(own, "new/left"), 0o777)) // of a killed attempt
	var wait sync.WaitGroup
	for range 8 {
		task := sharingTask(t, counted, shared, "mem://t/side/d.tar", nil)
		wait.Go(func() {
			dir, err := task.Directory("d")
			if err != nil || dir != filepath.Join(own, "files") {
				t.Errorf("%s, %v", dir, err)
				return
			}
			if text, err := os.ReadFile(dir + "/b/c"); string(text) != "b/c" || err != nil {
				t.Errorf("b/c: %q, %v", text, err)
			}
		})
	}
	wait.Wait()
	if n := counted.n.Load(); n != 1 {
		t.Errorf("the archive was read %d times", n)
	}
	if left, _ := filepath.Glob(shared + "/*/*"); len(left) != 2 { // the copy and its lock
		t.Errorf("left %q", left)
	}
	if _, err := sharingTask(t, counted, shared, "mem://t/side/d.tar", map[string]string{ArchiveMaxBytes: "3"}).Directory("d"); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("a job with a lower limit: %v", err)
	}
}

// TestDirectoryVersions: jobs get a copy of the version that they see, also from a directory with other versions. An archive that changes
// while it is unpacked leaves no copy.
func TestDirectoryVersions(t *testing.T) {
	files, shared := mem.New(1<<20), t.TempDir()
	replace := func(text string) {
		must(0, files.RemoveAll("mem://t/side/d.tar"))
		putFile(files, "mem://t/side/d.tar", tarFile(text))
	}
	read := func(f dfs.FS, want string) error {
		dir, err := sharingTask(t, f, shared, "mem://t/side/d.tar", nil).Directory("d")
		if err != nil {
			return err
		}
		if text, err := os.ReadFile(filepath.Join(dir, want)); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", want, text, err)
		}
		return nil
	}
	replace("one")
	err := read(&replacing{FS: files, replace: func() { replace("two") }}, "")
	if !errors.Is(err, ErrChanged) || !isFatal(err) {
		t.Errorf("an archive that changes: %v", err)
	}
	if copies, _ := filepath.Glob(shared + "/*/files"); len(copies) != 0 {
		t.Errorf("it left %q", copies)
	}
	for _, text := range []string{"two", "three", "three"} {
		if text == "three" {
			replace(text)
		}
		if err := read(files, text); err != nil {
			t.Error(err)
		}
	}
}

// TestLocalVersions: a local archive that is replaced by one of the same size and modification time, in place or by a rename, is
// unpacked again.
func TestLocalVersions(t *testing.T) {
	dir, shared := t.TempDir(), t.TempDir()
	name, began := filepath.Join(dir, "d.tar"), time.Unix(1_700_000_000, 5)
	write := func(name, text string) {
		must(0, os.WriteFile(name, tarFile(text), 0o666))
		must(0, os.Chtimes(name, began, began))
	}
	for _, c := range []struct {
		text    string
		replace func(text string)
	}{
		{"one", func(text string) { write(name, text) }},
		{"two", func(text string) { write(name, text) }},
		{"six", func(text string) {
			write(name+".new", text)
			must(0, os.Rename(name+".new", name))
		}},
	} {
		before := lastChangeOf(name)
		for c.replace(c.text); lastChangeOf(name) == before; c.replace(c.text) { // file systems count in ticks of the system's clock
		}
		got, err := sharingTask(t, local.New(), shared, "file://"+name, nil).Directory("d")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(got, c.text)); string(text) != c.text || err != nil {
			t.Errorf("%s: %q, %v", c.text, text, err)
		}
	}
}

// lastChangeOf returns the last change of a file, "" if there is none.
func lastChangeOf(name string) string {
	change, _ := lastChange(name)
	return change
}

// replacing replaces a file after it was opened for the first time.
type replacing struct {
	dfs.FS
	replace func()
}

func (r *replacing) Open(name string) (dfs.File, error) {
	f, err := r.FS.Open(name)
	if r.replace != nil {
		r.replace()
		r.replace = nil
	}
	return f, err
}

// TestDirectoryNames: names that add a suffix to another one are copies of their own.
func TestDirectoryNames(t *testing.T) {
	files := mem.New(1 << 20)
	names := []string{"d.new.archive", "d.new", "d.lock", "d", "d.new", "files", "new"}
	all := make(map[string]string)
	for _, name := range names {
		putFile(files, "mem://t/side/"+name+".tar", tarFile(name))
		all[name+"/"] = "mem://t/side/" + name + ".tar"
	}
	shared := filepath.Join(t.TempDir(), "shared")
	for range 2 {
		for _, name := range names {
			dir, err := directoryTask(files, t.TempDir(), shared, all, nil).Directory(name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != name || err != nil {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
}

func TestDirectories(t *testing.T) {
	files := mem.New(1 << 20)
	for _, name := range []string{"x", ".hidden", "sub/y", "sub/_z"} {
		putFile(files, "mem://t/side/dir/"+name, []byte(name))
	}
	putFile(files, "mem://t/side/out.tar", tarFile("../x"))
	putFile(files, "mem://t/side/big.tar", tarFile(strings.Repeat("n", 99)))
	putFile(files, "mem://t/side/text", nil)
	must(0, files.MkdirAll("mem://t/side/empty"))
	localDir := t.TempDir()
	must(0, os.WriteFile(localDir+"/file", nil, 0o666))
	all := map[string]string{
		"dir/": "mem://t/side/dir", "out/": "mem://t/side/out.tar", "big/": "mem://t/side/big.tar", "text/": "mem://t/side/text",
		"empty/": "mem://t/side/empty", "local/": "file://" + localDir, "none/": "mem://t/side/none.zip", "two/": "mem://t/side/*.tar", "file": "mem://t/side/text",
	}
	for name, want := range map[string]string{
		"dir": "", "local": "", "out": `member "../x" leads out`, "big": "more than 50 bytes", "text": "none of .zip", "empty": "has no files",
		"none": "none.zip", "two": "matches 2 names", "file": "are not its files", "undeclared": "not declared",
	} {
		shared := filepath.Join(t.TempDir(), "shared")
		task := directoryTask(dfs.Mux{"mem": files, "file": local.New()}, t.TempDir(), shared, all, map[string]string{ArchiveMaxBytes: "50"})
		dir, err := task.Directory(name)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) || !isFatal(err) {
				t.Errorf("%s: %v (fatal: %v), expected an error with %q", name, err, isFatal(err), want)
			}
			if left, _ := filepath.Glob(shared + "/*/*/*"); len(left) > 1 { // the lock
				t.Errorf("%s: left %q", name, left)
			}
			continue
		}
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case name == "local" && dir != localDir:
			t.Errorf("a local directory is used at %s", dir)
		case name == "dir":
			for _, file := range []string{"x", ".hidden", "sub/y", "sub/_z"} {
				if text, err := os.ReadFile(filepath.Join(dir, file)); string(text) != file || err != nil {
					t.Errorf("%s: %q, %v", file, text, err)
				}
			}
		}
	}
}

// TestDirectoryWaits: an attempt that waits for another one's copy ends with its context.
func TestDirectoryWaits(t *testing.T) {
	files := mem.New(1 << 20)
	putFile(files, "mem://t/side/d.tar", tarFile("a"))
	shared := t.TempDir()
	task := sharingTask(t, files, shared, "mem://t/side/d.tar", nil)
	own := filepath.Join(shared, versionDir(task, "d"))
	must(0, os.Mkdir(own, 0o777))
	unlock := must(tryLock(own + "/lock"))
	defer unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("killed"))
	task.Ctx = ctx
	if _, err := task.Directory("d"); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
}

// TestLinkArchives: the working directory has the archives of the property.
func TestLinkArchives(t *testing.T) {
	files := mem.New(1 << 20)
	putFile(files, "mem://t/side/d.tar", tarFile("a"))
	work := t.TempDir()
	task := directoryTask(files, work, t.TempDir()+"/shared", map[string]string{"d.tar/": "mem://t/side/d.tar", "e/": "mem://t/side/d.tar"},
		map[string]string{CacheArchives: "mem://t/side/d.tar,mem://t/side/d.tar#e"})
	if err := task.linkArchives(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d.tar/a", "e/a"} {
		if text, err := os.ReadFile(filepath.Join(work, name)); string(text) != "a" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestParseCached(t *testing.T) {
	for list, want := range map[string]string{
		"a.zip,,hdfs://n/b.tgz#b": "", "a.zip#": "is not a file name", "x#a/b": "is not a file name", "..": "is not a file name",
		"a.zip,d/a.zip": "a.zip and d/a.zip would both be a.zip in the working directory",
	} {
		got, err := ParseCached(list)
		if want == "" && (err != nil || len(got) != 2 || got[0] != Cached{"a.zip", "a.zip"} || got[1] != Cached{"hdfs://n/b.tgz", "b"}) {
			t.Errorf("%s: %v, %v", list, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, expected %q", list, err, want)
		}
	}
}

// TestDirectoryLinks: symbolic links of a local directory may lead to what is in it, also from a directory that is a link.
func TestDirectoryLinks(t *testing.T) {
	for _, c := range []struct{ link, target, want string }{
		{"sub/link", "../file", ""},
		{"sub/link", "ROOT/file", ""},
		{"link", "sub", ""},
		{"link", "../outside", "link leads out of the directory"},
		{"sub/link", "../../outside", "sub/link leads out of the directory"},
		{"link", "../outdir", "link leads out of the directory"},
		{"link", "OUT/outside", "link leads out of the directory"},
		{".link", "..", "leads out of the directory"},
		{"link", "../root2/x", "leads out of the directory"}, // a name that begins as the directory's
		{"link", "missing", "follow the symbolic link"},
		{"link", "link", "follow the symbolic link"},
	} {
		out := must(filepath.EvalSymlinks(t.TempDir()))
		root := filepath.Join(out, "root")
		for _, name := range []string{"root/file", "root/sub/other", "outside", "outdir/x", "root2/x"} {
			must(0, os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o777))
			must(0, os.WriteFile(filepath.Join(out, name), nil, 0o666))
		}
		must(0, os.Symlink(root, filepath.Join(out, "named")))
		must(0, os.Symlink(strings.NewReplacer("ROOT", root, "OUT", out).Replace(c.target), filepath.Join(root, c.link)))
		for _, dir := range []string{root, filepath.Join(out, "named")} {
			_, err := SideFiles(dfs.Mux{"file": local.New()}, "d/", "file://"+dir)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s to %s in %s: %v, expected %q", c.link, c.target, dir, err, c.want)
			}
		}
	}
}
