package tasktracker

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/wire"
)

// withAndWithoutGroups runs a test with control groups, if they can be made, and without.
func withAndWithoutGroups(t *testing.T, test func(t *testing.T, l *leader)) {
	for name, temporary := range map[string]bool{"groups": false, "no groups": true} {
		t.Run(name, func(t *testing.T) {
			l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Temporary: temporary})
			l.connect(1)
			test(t, l)
		})
	}
}

// mustNameLimit checks the error of an attempt that exceeded a limit. The meter or the
// kernel may have ended it.
func mustNameLimit(t *testing.T, r *wire.Result, limit string) {
	t.Helper()
	for _, want := range []string{"the " + limit, "(mapreduce.map.memory.mb)"} {
		if !strings.Contains(r.Error, want) {
			t.Errorf("error is %q, want %q", r.Error, want)
		}
	}
}

// TestMemoryLimit: an attempt that exceeds its memory limit is killed with all its
// processes, also outside its process group. Other attempts continue.
func TestMemoryLimit(t *testing.T) { withAndWithoutGroups(t, testMemoryLimit) }

func testMemoryLimit(t *testing.T, l *leader) {
	other := l.launch(wire.Map, 1, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == other && r.State == wire.AttemptReady })
	id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doUseMemory, Memory: 256 << 20, Processes: 10})
	r := l.final(id, wire.AttemptFailed)
	mustNameLimit(t, r, "256 MiB")
	l.send(&wire.Grant{Epoch: 1, Attempt: other})
	l.final(other, wire.AttemptSucceeded)
}

// TestProcessLimit: an attempt that exceeds its limit of processes is killed with all of them.
func TestProcessLimit(t *testing.T) { withAndWithoutGroups(t, testProcessLimit) }

func testProcessLimit(t *testing.T, l *leader) {
	id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doFork, Processes: 20})
	r := l.final(id, wire.AttemptFailed)
	if !strings.Contains(r.Error, "processes, more than the 20 it may have (quern.task.processes)") {
		t.Errorf("error is %q", r.Error)
	}
	children := strings.Fields(r.Log)
	if len(children) == 0 {
		t.Error("the log has no process ids")
	}
	for _, child := range children {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		mustEnd(t, pid)
	}
}

// TestLimitsChange: an idle worker gets the limits of its next attempt. For an attempt with
// lower limits a new worker starts.
func TestLimitsChange(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	task := wire.TaskID{Job: job1, Kind: wire.Map}
	first := l.final(l.launchAs(task, wire.Launch{Index: doSucceed, Memory: 1 << 30, Processes: 10}), wire.AttemptSucceeded)
	second := l.final(l.launchAs(task, wire.Launch{Index: doSucceed}), wire.AttemptSucceeded)
	if a, b := first.Counters.Get("pid", "self"), second.Counters.Get("pid", "self"); a != b {
		t.Errorf("the second attempt ran in process %d, the first in %d", b, a)
	}
	third := l.launchAs(task, wire.Launch{Index: doCommit, Memory: 1 << 10})
	mustNameLimit(t, l.final(third, wire.AttemptFailed), "0 MiB")
}

// TestMaximum: the operator's maximum holds for attempts of jobs without limits, and for those that ask for
// more.
func TestMaximum(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Maximum: process.Maximum{Memory: 256 << 20, Processes: 20}})
	l.connect(1)
	for _, asked := range []wire.Launch{{}, {Memory: 1 << 30, Processes: 1000}} {
		hungry, forking := asked, asked
		hungry.Index, forking.Index = doUseMemory, doFork
		task := wire.TaskID{Job: job1, Kind: wire.Map}
		for launch, want := range map[*wire.Launch]string{
			&hungry: "the 256 MiB", &forking: "processes, more than the 20 it may have (tasktracker -max-processes)",
		} {
			r := l.final(l.launchAs(task, *launch), wire.AttemptFailed)
			if !strings.Contains(r.Error, want) || launch == &hungry && !strings.Contains(r.Error, "(tasktracker -max-memory)") {
				t.Errorf("asked for %d bytes and %d processes: error %q, want %q", asked.Memory, asked.Processes, r.Error, want)
			}
		}
	}
	l.succeed(wire.Map, 1, doSucceed)
}

// TestForkBomb: a job that starts processes without end fails with an error that names the limit, and the
// tracker goes on.
func TestForkBomb(t *testing.T) { withAndWithoutGroups(t, testForkBomb) }

func testForkBomb(t *testing.T, l *leader) {
	id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doBomb, Processes: 2})
	r := l.final(id, wire.AttemptFailed)
	if !strings.Contains(r.Error, "(quern.task.processes)") {
		t.Errorf("error is %q", r.Error)
	}
	l.succeed(wire.Map, 1, doSucceed)
}
