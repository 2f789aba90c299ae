package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/jobtracker/core/slottime"
	"github.com/quernmr/quern/wire"
)

// detail adds to the status of a job what lists of jobs leave out.
func (l *leader) detail(j *job, s *wire.JobStatus, now time.Duration) {
	s.Partitions = j.partitions.sizes.Status(len(j.reduces), len(j.reduces)-j.partitions.ungathered)
	s.HotKeys = j.partitions.hot.List()
	s.SlotTime = j.tally.slots.Status(l.wallAt(now), l.assign.LeftSlots(&j.assign, now))
}

// setHot takes the hot groups that a reduce reports; nil: no others than before.
func (l *leader) setHot(j *job, id wire.TaskID, hot *wire.Hot) {
	if hot != nil && id.Kind == wire.Reduce && id.N >= 0 && id.N < len(j.reduces) {
		j.partitions.hot.Set(id.N, hot, j.spec.plan.Combine)
		l.c.noteChange(j.id)
	}
}

// endHot takes the hot groups of a reduce that has ended. If it succeeded, they are all hot groups there are.
func (l *leader) endHot(j *job, id wire.TaskID, state wire.AttemptState, r *wire.Result) {
	if r.Hot == nil && state == wire.AttemptSucceeded && id.Kind == wire.Reduce {
		j.partitions.hot.Drop(id.N)
	}
	l.setHot(j, id, r.Hot)
}

// Reasons in the Kill of an attempt that another attempt of its task has outrun.
const (
	otherSucceeded = "another attempt of the map has succeeded"
	otherCommitted = "another attempt of the task has committed"
)

// outrun reports whether another attempt of the task has won.
func (a *attempt) outrun() bool { return a.reason == otherSucceeded || a.reason == otherCommitted }

// addSlotTime adds the time of an ended attempt to what the job's slots did. again says that its task had
// succeeded before.
func (j *job) addSlotTime(p *past.Attempt, r *wire.Result, outrun, again bool) {
	if !p.Kind.Slotted() {
		return
	}
	x := endedIn(p)
	x.Outrun, x.Again = outrun, again
	x.Started, x.Shuffled, x.Completed = r.Started, r.Shuffled, r.Completed
	x.Read = p.Reads.Node.Took + p.Reads.Rack.Took + p.Reads.Remote.Took
	j.tally.slots.Add(&x)
}

// takeBackLost takes the time of an attempt back that counted as lost.
func (j *job) takeBackLost(p *past.Attempt) {
	if p.Kind.Slotted() {
		x := endedIn(p)
		j.tally.slots.Remove(&x)
	}
}

func endedIn(p *past.Attempt) slottime.Ended {
	return slottime.Ended{Kind: p.Kind, State: p.State, Held: p.Took + p.Before(), Before: p.Before(), Lost: p.Lost}
}
