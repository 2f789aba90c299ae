package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// TestRunOnCluster: run uploads the program with its hash as name, and waits until the job ends.
func TestRunOnCluster(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	f.recorder.state = wire.Succeeded
	args := []string{"run", exe, "-input", exe, "-output", t.TempDir() + "/out"}
	if code, _, stderr := f.run(t, args...); code != 1 || !strings.Contains(stderr, "staging directory "+f.staging+" is not shared with this machine") {
		t.Errorf("staging elsewhere: exit code %d: %s", code, stderr)
	}
	proof := filepath.Join(strings.TrimPrefix(f.staging, "file://"), "clusters", "c1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(proof), 0o755), os.WriteFile(proof, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := f.run(t, args...)
	if code != 0 || stdout != "" || !strings.Contains(stderr, "job_7_0001 job succeeded") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	hash := hex.EncodeToString(sum[:])
	staging := strings.TrimPrefix(f.staging, "file://")
	uploaded, err := filepath.Glob(filepath.Join(staging, "programs", "*", "*"))
	if err != nil || len(uploaded) != 1 || filepath.Base(uploaded[0]) != hash {
		t.Fatalf("uploaded %q, %v, want %s", uploaded, err, hash)
	}
	got := f.recorder.submission.Program
	if got.Hash != hash || got.Path != "file://"+uploaded[0] {
		t.Errorf("submitted %+v", got)
	}
	copied, err := os.ReadFile(uploaded[0])
	if err != nil || !bytes.Equal(copied, program) {
		t.Errorf("the upload differs: %v", err)
	}
	if code, _, stderr := f.run(t, args...); code != 0 {
		t.Errorf("once more: exit code %d: %s", code, stderr)
	}
	embedded := append(slices.Clone(args), "-D", "quern.embedded.output=true", "-D", "quern.embedded.slots=2", "-D", "quern.task.inprocess=true")
	if code, _, stderr := f.run(t, embedded...); code != 0 ||
		strings.Count(stderr, "warning:") != 2 ||
		!strings.Contains(stderr, "warning: property quern.embedded.output has no effect on a cluster\nwarning: property quern.task.inprocess has no effect on a cluster\n") {
		t.Errorf("properties of embedded runs: exit code %d: %s", code, stderr)
	}
	f.trackers[0].Addr = "10.0.0.1:1"
	if code, _, stderr := f.run(t, args...); code != 1 || !strings.Contains(stderr, exe+" is a local file on a cluster of several machines") {
		t.Errorf("local input on two machines: exit code %d: %s", code, stderr)
	}
	args = append([]string{"run", "-shared-local"}, args[1:]...)
	if code, _, stderr := f.run(t, args...); code != 0 {
		t.Errorf("-shared-local: exit code %d: %s", code, stderr)
	}
	later := &wire.Submission{Program: wire.Program{Step: &wire.Step{Output: "file:///out"}}}
	machines := &web.Cluster{Trackers: []web.Tracker{{Addr: "10.0.0.1:1"}, {Addr: "10.0.0.2:1"}}}
	if err := checkShared(later, machines, false); err == nil || !strings.Contains(err.Error(), "file:///out is a local file") {
		t.Errorf("a step before a local output of a driver: %v", err)
	}
}
