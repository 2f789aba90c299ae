package tasktracker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestCrash: after a crash of its worker, the error of an attempt begins with Go's message,
// and names the limits in force.
func TestCrash(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "6GiB")
	l := startTracker(t, "t1", t.TempDir())
	task := wire.TaskID{Job: job1, Kind: wire.Map, N: 1}
	r := l.final(l.launchAs(task, wire.Launch{Index: doCrash, Memory: 8 << 30, Processes: 100}), wire.AttemptFailed)
	for _, want := range []string{
		"its worker ended before it did: exit status 2", "mapreduce.map.memory.mb=8192", "quern.task.processes=100", "GOMEMLIMIT=6GiB",
	} {
		if !strings.Contains(r.Error, want) {
			t.Errorf("error is %q, want %q in it", r.Error, want)
		}
	}
	if !strings.HasPrefix(r.Error, "fatal error: runtime: out of memory (") {
		t.Errorf("error is %q", r.Error)
	}
	if !strings.HasPrefix(r.Log, "fatal error: ") || !strings.Contains(r.Log, "tasktracker.takeTooMuch(") || strings.Contains(r.Log, "runtime.throw") {
		t.Errorf("log is\n%s", r.Log)
	}
	r = l.final(l.launchAs(task, wire.Launch{Index: doDie, Memory: 8 << 30}), wire.AttemptFailed)
	if want := fmt.Sprintf("its worker ended before it did: signal: killed; limits: mapreduce.map.memory.mb=%d", 8<<10); !strings.HasPrefix(r.Error, want) {
		t.Errorf("error is %q, want %q", r.Error, want)
	}
	if r := l.fail(doExit); strings.Contains(r.Error, "limits") || !strings.HasSuffix(r.Log, "line 29") {
		t.Errorf("error is %q, log %q", r.Error, r.Log)
	}
}
