package tasktracker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/wire"
)

// stageHashed stages a submission with a copy of this test's binary, and its hash.
func stageHashed(t *testing.T) (staging, file, hash string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	hash = hex.EncodeToString(sum[:])
	file = filepath.Join(t.TempDir(), hash)
	if err := os.WriteFile(file, text, 0o444); err != nil {
		t.Fatal(err)
	}
	return stageProgramAs(t, wire.Program{Path: "file://" + file, Hash: hash}), file, hash
}

func TestProgramByHash(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	staging, uploaded, hash := stageHashed(t)
	l.staging = staging
	first, second := l.launch(wire.Map, 0, doCommit), l.launch(wire.Map, 1, doCommit)
	for range 2 {
		await(l, func(r *wire.Report) bool { return r.State == wire.AttemptReady })
	}
	copied := l.path(program.Dir, hash, hash)
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("copy is %v, %v", info, err)
	}
	// Attempts use the copy: the uploaded file may go.
	if err := os.Remove(uploaded); err != nil {
		t.Fatal(err)
	}
	for _, id := range []wire.AttemptID{first, second} {
		l.send(&wire.Grant{Epoch: 1, Attempt: id})
		l.final(id, wire.AttemptSucceeded)
	}
	l.fail(doExit)
	l.succeed(wire.Map, 0, doSucceed)
	l.send(&wire.DropJob{Epoch: 1, Job: job1, EndedStaging: staging})
	l.send(&wire.Kill{Epoch: 1, Attempt: first})
	await(l, func(r *wire.Report) bool { return r.Attempt == first })
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	mustBeEmpty(t, l.path(program.Dir))
}

// TestProgramOfStopped: after another tracker began the cleanup of a submission, which
// renames it, this tracker can run the cleanup too.
func TestProgramOfStopped(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	l.staging = stage(t)
	dir := strings.TrimPrefix(l.staging, "file://")
	if err := os.Rename(filepath.Join(dir, wire.StagedSubmission), filepath.Join(dir, wire.StagedStopped)); err != nil {
		t.Fatal(err)
	}
	l.succeed(wire.Cleanup, 0, doSucceed)
}

func TestProgramWithAnotherHash(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	_, uploaded, hash := stageHashed(t)
	if err := os.Chmod(uploaded, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(uploaded, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("more")
	f.Close()
	for _, c := range []struct{ path, hash, want string }{
		{uploaded, hash, "want " + hash},
		{uploaded, "../../x", "is not a SHA-256"},
		{uploaded, strings.ToUpper(hash), "is not a SHA-256"},
		{uploaded + ".missing", hash, uploaded + ".missing"},
		{filepath.Dir(uploaded) + "/..", hash, "has no file name at its end"},
		{filepath.Dir(uploaded) + "/.", hash, "has no file name at its end"},
	} {
		l.staging = stageProgramAs(t, wire.Program{Path: "file://" + c.path, Hash: c.hash})
		if r := l.fail(doSucceed); !strings.Contains(r.Error, c.want) {
			t.Errorf("%s of %s: %q", c.hash, c.path, r.Error)
		}
	}
	mustBeEmpty(t, l.path(program.Dir))
}
