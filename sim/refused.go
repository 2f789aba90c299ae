package sim

import (
	"math/rand/v2"
	"strings"

	"github.com/quernmr/quern/wire"
)

// Effects that fail for good, also after the storm.
const (
	Histories       Kind = "refuse to write histories, for good"
	StagingRemovals Kind = "refuse to remove staging directories, for good"
	Cleanups        Kind = "refuse to remove anything for cleanups, for good"
	StagingWrites   Kind = "refuse new files in staging directories, for good"
	AttemptLogs     Kind = "do not answer reads of the logs of attempts, for good, on"
)

func refusals() []Kind {
	return []Kind{Histories, StagingRemovals, Cleanups, StagingWrites, AttemptLogs}
}

// drawRefusals draws the effects of a seed that fail for good: none in most runs.
func drawRefusals(seed uint64) (faults []Fault) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	if rnd.IntN(6) == 0 {
		f := Fault{Kind: refusals()[rnd.IntN(len(refusals()))]}
		if f.Kind == AttemptLogs {
			f.Node = taskTrackerName(rnd.IntN(taskTrackers))
		}
		faults = append(faults, f)
	}
	return faults
}

// refuse begins a fault that stays.
func (w *world) refuse(f Fault) {
	w.note("fault: %v", f)
	switch t, ok := w.nodes[f.Node].(*taskTracker); {
	case f.Kind != AttemptLogs:
		w.refused[f.Kind] = true
	case ok:
		t.unreadable = true
	}
}

// refuses reports whether a worker's call fails for good.
func (w *world) refuses(run *wire.Run, c *fileCall) bool {
	switch c.op {
	case "remove", "removeall":
		return w.refused[Cleanups] && run != nil && run.Attempt.Task.Kind == wire.Cleanup
	case "create", "mkdir", "mkdirall":
		return w.refused[StagingWrites] && strings.HasPrefix(c.name, clusterStaging)
	}
	return false
}
