package tasktracker

import (
	"crypto/sha256"
	"fmt"
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
	hash = hashOf(t, self)
	file = filepath.Join(t.TempDir(), hash)
	if err := os.WriteFile(file, text, 0o444); err != nil {
		t.Fatal(err)
	}
	return stageProgramAs(t, wire.Program{Path: "file://" + file, Hash: hash}), file, hash
}

func hashOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func TestProgramByHash(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	staging, uploaded, _ := stageHashed(t)
	l.staging = staging
	first, second := l.launch(wire.Map, 0, doCommit), l.launch(wire.Map, 1, doCommit)
	for range 2 {
		await(l, func(r *wire.Report) bool { return r.State == wire.AttemptReady })
	}
	mustBeEmpty(t, l.path(program.Dir)) // no other process can open the copy by a name
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
		{uploaded, hash, uploaded + " has SHA-256 " + hashOf(t, uploaded) + ", but " + hash + " was submitted"},
		{uploaded, "../../x", "is not a SHA-256"},
		{uploaded, strings.ToUpper(hash), "is not a SHA-256"},
		{uploaded + ".missing", hash, uploaded + ".missing"},
		{filepath.Dir(uploaded) + "/..", hash, "has no file name at its end"},
		{filepath.Dir(uploaded) + "/.", hash, "has no file name at its end"},
	} {
		l.staging = stageProgramAs(t, wire.Program{Path: "file://" + c.path, Hash: c.hash})
		if r := l.fail(doSucceed); !strings.Contains(r.Error, c.want) || r.Fatal != (c.path == uploaded && c.hash == hash) {
			t.Errorf("%s of %s: %q, fatal: %v", c.hash, c.path, r.Error, r.Fatal)
		}
	}
	mustBeEmpty(t, l.path(program.Dir))
}

// TestChangedSubmission: another job replaces the staged submission by one with its own program or
// arguments, before or after the first launch here. The program does not start, and the job fails
// without attempts on other trackers.
func TestChangedSubmission(t *testing.T) {
	for _, launched := range []bool{false, true} {
		staging, uploaded, hash := stageHashed(t)
		root := filepath.Dir(strings.TrimPrefix(staging, "file://"))
		l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: "file://" + root})
		l.connect(1)
		l.staging = staging
		submitted := digestOf(staging)
		if launched {
			l.succeed(wire.Map, 0, doSucceed)
			l.fail(doExit) // its worker ends, and the idle one too
		}
		own := stageProgramAs(t, wire.Program{Path: "file://" + uploaded, Hash: hash, Args: []string{"-crash"}})
		name := filepath.Join(strings.TrimPrefix(staging, "file://"), wire.StagedSubmission)
		if err := os.Rename(filepath.Join(strings.TrimPrefix(own, "file://"), wire.StagedSubmission), name); err != nil {
			t.Fatal(err)
		}
		id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doSucceed, Digest: submitted})
		if launched { // the verified submission is in the tracker's memory
			l.final(id, wire.AttemptSucceeded)
			continue
		}
		r := l.final(id, wire.AttemptFailed)
		want := fmt.Sprintf("%s has SHA-256 %x, but %x was submitted", name, digestOf(staging), submitted)
		if !r.Fatal || !strings.Contains(r.Error, want) || r.Log != "" {
			t.Errorf("fatal: %v, %q, want %q; log %q", r.Fatal, r.Error, want, r.Log)
		}
	}
}

// TestLaunchWithoutDigest: a tracker of a cluster starts nothing without a digest.
func TestLaunchWithoutDigest(t *testing.T) {
	staging, _, _ := stageHashed(t)
	root := filepath.Dir(strings.TrimPrefix(staging, "file://"))
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: "file://" + root})
	l.connect(1)
	l.staging = staging
	id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doSucceed, Digest: []byte{}})
	if r := l.final(id, wire.AttemptFailed); !strings.Contains(r.Error, "without its SHA-256") {
		t.Errorf("error is %q", r.Error)
	}
}
