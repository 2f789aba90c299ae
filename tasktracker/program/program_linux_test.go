package program

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/jobfile"
	"github.com/quernmr/quern/wire"
)

// stage stages a submission of /bin/true, and returns its URL and digest.
func stage(t *testing.T) (staging string, digest []byte) {
	t.Helper()
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "program"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	frame, err := wire.Append(nil, &wire.Submission{Program: wire.Program{
		Path: "file://" + dir + "/program", Hash: fmt.Sprintf("%x", sha256.Sum256(content)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, wire.StagedSubmission), frame, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir, wire.StagedDigest(frame)
}

func permitted(*os.File) bool { return true }

// TestCopies: a memfd and, without memory or the system's permission for it, a file without a name can
// be executed as long as a caller has it open. The memory is counted until the submission is forgotten.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		used      int64
		forbidden bool
	}{{}, {used: maxMemory}, {forbidden: true}} {
		dir := t.TempDir()
		p := New(dir, local.New(), false, nil, func(probe *os.File) bool {
			if _, err := probe.Write(nil); err == nil {
				t.Error("the probe can be written, so that it cannot be executed")
			}
			return !c.forbidden
		})
		used, inMemory := c.used, c.used == 0 && !c.forbidden
		p.memory = used
		staging, digest := stage(t)
		_, exe, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
		if err != nil {
			t.Fatal(err)
		}
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
		if err != nil || len(target) == 0 || (target[:7] == "/memfd:") != inMemory {
			t.Errorf("the copy is %s, %v", target, err)
		}
		if (p.memory > used) != inMemory {
			t.Errorf("%d bytes of memory are counted, before there were %d", p.memory, used)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, Dir, "*")); len(files) != 0 {
			t.Errorf("the copy has a name: %v", files)
		}
		p.Forget(staging)()
		p.limitUnused(used, 0)
		if p.memory != used {
			t.Errorf("%d bytes of memory are counted after the end, before there were %d", p.memory, used)
		}
		cmd := exec.Command("/proc/self/fd/3")
		cmd.ExtraFiles = []*os.File{exe}
		if err := cmd.Run(); err != nil {
			t.Errorf("run the copy: %v", err)
		}
		exe.Close()
	}
}

// TestTooLarge: a program that is too large is not copied.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	staging, digest := stage(t)
	if err := os.Truncate(strings.TrimPrefix(staging, "file://")+"/program", jobfile.MaxSize+1); err != nil {
		t.Skipf("no large files here: %v", err)
	}
	p := New(dir, local.New(), false, nil, permitted)
	_, _, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
	if !errors.Is(err, jobfile.ErrTooLarge) {
		t.Errorf("the copy of a large program: %v", err)
	}
}

// watched is a file system that calls look before it returns bytes of a program.
type watched struct {
	dfs.FS
	look func()
}

func (w watched) Open(name string) (dfs.File, error) {
	f, err := w.FS.Open(name)
	return watchedFile{f, w.look}, err
}

type watchedFile struct {
	dfs.File
	look func()
}

func (f watchedFile) Read(p []byte) (int, error) {
	f.look()
	return f.File.Read(p)
}

// TestCopyInProgress: without memory for it, a copy has no name while it is written: a job could open
// it, and change it after the check of its hash.
func TestCopyInProgress(t *testing.T) {
	dir := t.TempDir()
	var names []string
	p := New(dir, watched{local.New(), func() {
		files, _ := filepath.Glob(filepath.Join(dir, Dir, "*"))
		names = append(names, files...)
	}}, false, nil, permitted)
	p.memory = maxMemory
	staging, digest := stage(t)
	_, exe, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
	if err != nil {
		t.Fatal(err)
	}
	exe.Close()
	if len(names) > 0 {
		t.Errorf("the copy has the name %s", names[0])
	}
}

// TestUnusedCopy: a submission after the last one with a program does not read the program
// again. A memfd without a submission is removed above the limit, one with a submission never.
func TestUnusedCopy(t *testing.T) {
	reads := 0
	p := New(t.TempDir(), watched{local.New(), func() { reads++ }}, false, nil, func(*os.File) bool { return true })
	prepare := func(staging string, digest []byte) (read int) {
		before := reads
		_, exe, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
		if err != nil {
			t.Fatal(err)
		}
		exe.Close()
		return reads - before
	}
	staging, digest := stage(t)
	first := prepare(staging, digest)
	p.Forget(staging)()
	if again := prepare(staging, digest); again >= first {
		t.Errorf("%d reads for the first submission, %d for the second one", first, again)
	}
	p.limitUnused(0, 0)
	if len(p.byHash) != 1 {
		t.Error("a copy was removed that a submission uses")
	}
	p.Forget(staging)()
	size := p.memory
	for _, limit := range []int64{size, size - 1} {
		if p.limitUnused(maxMemory, limit); (len(p.byHash) == 1) != (limit == size) {
			t.Errorf("%d programs of %d bytes are left within %d bytes", len(p.byHash), size, limit)
		}
	}
}

// TestCopyOfOwner: a job that runs with this process's user can change a copy that is a file, by the descriptor that it got.
// Submissions of other owners with the same program do not execute it.
func TestCopyOfOwner(t *testing.T) {
	p := New(t.TempDir(), local.New(), false, nil, func(*os.File) bool { return false })
	prepare := func(owner string) *os.File {
		staging, digest := stage(t)
		_, exe, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).PrepareFor(owner, local.New(), digest)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { exe.Close() })
		return exe
	}
	eve := prepare("eve")
	if err := eve.Chmod(0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/self/fd/%d", eve.Fd()), []byte("of eve"), 0o700); err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]bool{"eve": true, "ann": false} {
		text := make([]byte, 6)
		if _, err := prepare(owner).ReadAt(text, 0); err != nil || (string(text) == "of eve") != want {
			t.Errorf("%s gets the copy %q, %v", owner, text, err)
		}
	}
}

// without is a file system in which a file cannot be opened.
type without struct {
	dfs.FS
	name string
}

func (f without) Open(name string) (dfs.File, error) {
	if name == f.name {
		return nil, fs.ErrPermission
	}
	return f.FS.Open(name)
}

// TestCopyOfOthers: the hash of another user's program is not enough to get its copy.
func TestCopyOfOthers(t *testing.T) {
	p := New(t.TempDir(), local.New(), false, nil, permitted)
	staging, digest := stage(t)
	root := staging[:strings.LastIndexByte(staging, 0x2f)]
	_, exe, err := p.Submission(staging, root).Prepare(digest)
	if err != nil {
		t.Fatal(err)
	}
	exe.Close()
	p.submissions = make(map[string]*Submission) // the next submission has the same file
	other := without{local.New(), staging + "/program"}
	if _, exe, err := p.Submission(staging, root).PrepareFrom(other, digest); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a user who cannot read the program gets %v, %v", exe, err)
	}
	_, exe, err = p.Submission(staging, root).Prepare(digest)
	if err != nil {
		t.Fatal(err)
	}
	exe.Close()
}

// TestSharedDirectory: of two submissions with one staging directory, the second one has another
// program. The second one is refused, and nothing stays in memory.
func TestSharedDirectory(t *testing.T) {
	p := New(t.TempDir(), local.New(), false, nil, permitted)
	staging, digest := stage(t)
	root := staging[:strings.LastIndexByte(staging, 0x2f)]
	_, exe, err := p.Submission(staging, root).Prepare(digest)
	if err != nil {
		t.Fatal(err)
	}
	exe.Close()
	dir := staging[len("file://"):]
	content := []byte("another program")
	frame, err := wire.Append(nil, &wire.Submission{Program: wire.Program{Path: staging + "/other", Hash: fmt.Sprintf("%x", sha256.Sum256(content))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(dir+"/other", content, 0o600), os.WriteFile(filepath.Join(dir, wire.StagedSubmission), frame, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Submission(staging, root).Prepare(wire.StagedDigest(frame)); err == nil || !strings.Contains(err.Error(), "another submission with this directory") {
		t.Errorf("the second submission: %v", err)
	}
	p.Forget(staging)()
	p.limitUnused(0, 0)
	if p.memory != 0 || len(p.byHash) != 0 {
		t.Errorf("%d bytes and %d programs stay in memory", p.memory, len(p.byHash))
	}
}

// TestFailedCopy: a copy with a wrong hash leaves neither a file nor counted memory.
func TestFailedCopy(t *testing.T) {
	for _, used := range []int64{0, maxMemory} {
		dir := t.TempDir()
		p := New(dir, local.New(), false, nil, permitted)
		p.memory = used
		staging, digest := stage(t)
		program := staging[len("file://"):] + "/program"
		if err := os.WriteFile(program, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
		if err == nil || p.memory != used {
			t.Errorf("%v, and %d bytes of memory are counted, before there were %d", err, p.memory, used)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, Dir, "*")); len(files) != 0 {
			t.Errorf("the copy is still there: %v", files)
		}
	}
}
