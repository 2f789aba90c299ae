package program

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/local"
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

// TestCopies: a memfd and, without memory for it, a file without a name can be executed as long as
// a caller has it open. The memory is counted until the submission is forgotten.
func TestCopies(t *testing.T) {
	for _, used := range []int64{0, maxMemory} {
		dir := t.TempDir()
		p := New(dir, local.New(), false, nil)
		p.memory = used
		staging, digest := stage(t)
		_, exe, err := p.Submission(staging, staging[:strings.LastIndexByte(staging, 0x2f)]).Prepare(digest)
		if err != nil {
			t.Fatal(err)
		}
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
		if err != nil || len(target) == 0 || (target[:7] == "/memfd:") != (used == 0) {
			t.Errorf("the copy is %s, %v", target, err)
		}
		if (p.memory > used) != (used == 0) {
			t.Errorf("%d bytes of memory are counted, before there were %d", p.memory, used)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, Dir, "*")); len(files) != 0 {
			t.Errorf("the copy has a name: %v", files)
		}
		p.Forget(staging)()
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

// TestFailedCopy: a copy with a wrong hash leaves neither a file nor counted memory.
func TestFailedCopy(t *testing.T) {
	for _, used := range []int64{0, maxMemory} {
		dir := t.TempDir()
		p := New(dir, local.New(), false, nil)
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
