package core

import (
	"math"

	"github.com/quernmr/quern/scheduler"
)

// snapshot makes the scheduler's input for a phase at once.
func (l *leader) snapshot(phase int) scheduler.Snapshot {
	v := l.newSurvey(phase)
	v.round.Request()
	v.jobRound.Advance(math.MaxInt)
	for _, stage := range v.stages[:4] { // without preemption
		stage(math.MaxInt, true)
	}
	v.addFlows(math.MaxInt, true)
	return v.snapshot
}
