// Package past keeps the attempts of a job that have ended, for display, for the job's
// history and for the comparison of trackers. It knows jobs, tasks and trackers by numbers
// alone, and reads no clock.
//
// There are as many ended attempts as tasks, up to [Most] of one job. So [Attempt] holds no
// texts: causes are in a list of their own, and only attempts with one refer to it. Each
// attempt refers to the one of the same task that ended before it. The task has a [Chain],
// which refers to the last one.
//
// The job tracker's core calls [Attempts.Keep] for each end that it hears of, in that order.
// It reads [Attempts.Kept] for displays and histories, and [Attempts.Latest] when it compares
// trackers. Attempts is not safe for concurrent use.
//
// Invariants
//
//	P1  A chain has each number once, as it was first told. Only an attempt that was taken for
//	    lost is replaced, at its place, by what is told of it later.
//	P2  At most Most attempts are kept. Those that end later are counted, and Latest has the
//	    last MostLate of them. These are not compared: one that is told twice counts twice.
package past

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// Most is how many ended attempts of one job are kept.
const Most = 100_000

// MostLate is how many of those that end later are known, the last ones.
const MostLate = 1000

// Attempts is the attempts of a job that have ended.
type Attempts struct {
	kept       []Attempt // in the order of their ends
	causes     []string  // of some of them
	unkept     int       // those that have ended and are not in kept
	late       []Attempt // the last ones of these, a ring
	most, ring int       // room in kept and late
}

// Attempt is one that has ended.
type Attempt struct {
	Number   int // the AttemptID's
	Bytes    int64
	Began    int64 // Unix milliseconds
	Took     int64 // milliseconds
	Reads    wire.Reads
	waited   int32 // milliseconds from its launch until it began, or unknownLaunch
	Task     int32 // the TaskID's number
	Tracker  int32 // the caller's number of its name
	cause    int32 // 1 + its place in causes; 0: none
	previous Chain // the task's attempts that ended before
	Kind     wire.Kind
	State    wire.AttemptState
	Level    wire.Level
	Lost     bool // how it ended is not known
}

// Chain is the attempts of one task that are kept: 1 + the place of the last one. The zero
// value has none.
type Chain int32

// unknownLaunch is of attempts that an earlier leader has launched.
const unknownLaunch = -1

// New is without attempts.
func New() Attempts { return Attempts{most: Most, ring: MostLate} }

// Expect makes room for so many attempts.
func (x *Attempts) Expect(n int) { x.kept = slices.Grow(x.kept, min(n, x.most)) }

// Kept is those that are kept, in the order of their ends.
func (x *Attempts) Kept() []Attempt { return x.kept }

// Unkept is how many have ended and are not kept.
func (x *Attempts) Unkept() int { return x.unkept }

// Span sets when an attempt began and how long it took, in Unix milliseconds. This leader
// knows it since its launch, or, if an earlier leader launched it, since it heard of it. If
// its tracker does not say how long it took (0), it is taken to have begun at since.
func (a *Attempt) Span(since, ended int64, took time.Duration, launched bool) {
	a.Began, a.Took = since, took.Milliseconds()
	if a.Took > 0 {
		a.Began = ended - a.Took
	} else {
		a.Took = ended - since
	}
	a.waited = unknownLaunch
	if launched {
		a.waited = int32(min(max(a.Began-since, 0), math.MaxInt32))
	}
}

// Keep adds an attempt of the task that has the chain, and why it ended, if there is a cause.
func (x *Attempts) Keep(of *Chain, a Attempt, cause string) {
	a.previous = *of
	at := *of
	for at != 0 && x.kept[at-1].Number != a.Number {
		at = x.kept[at-1].previous
	}
	switch {
	case at != 0 && x.kept[at-1].Lost:
		a.previous = x.kept[at-1].previous
	case at == 0 && len(x.kept) == x.most:
		x.keepLate(a)
		return
	case at == 0:
		x.kept = append(x.kept, Attempt{})
		at = Chain(len(x.kept))
		*of = at
	default:
		return
	}
	if cause != "" {
		x.causes = append(x.causes, wire.Truncate(cause, wire.MaxTrouble))
		a.cause = int32(len(x.causes))
	}
	x.kept[at-1] = a
}

func (x *Attempts) keepLate(a Attempt) {
	if len(x.late) < x.ring {
		x.late = append(x.late, Attempt{})
	}
	x.late[x.unkept%x.ring] = a
	x.unkept++
}

// Latest yields the attempts that have ended, the last one first. Of those that are not kept
// it has the last ones, so that trackers are judged also by what ends late in a large job.
func (x *Attempts) Latest() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for i := range x.late {
			if !yield(&x.late[(x.unkept-1-i)%x.ring]) {
				return
			}
		}
		for i := len(x.kept) - 1; i >= 0; i-- {
			if !yield(&x.kept[i]) {
				return
			}
		}
	}
}

// Status returns the status of a kept attempt, without its job and its tracker's name and address.
func (x *Attempts) Status(a *Attempt) wire.AttemptStatus {
	s := wire.AttemptStatus{
		Attempt: wire.AttemptID{Task: wire.TaskID{Kind: a.Kind, N: int(a.Task)}, N: a.Number}, State: a.State,
		Bytes: wire.Progress{Done: a.Bytes, Total: a.Bytes}, Began: a.Began, Took: a.Took, Level: a.Level, Reads: a.Reads,
	}
	if a.waited != unknownLaunch {
		s.Launched = a.Began - int64(a.waited)
	}
	if a.cause > 0 {
		s.Error = x.causes[a.cause-1]
	}
	return s
}
