// Package shares keeps what trackers are told of how jobs share what the homes fetch: the
// portions of the plan for maps, as the last one that mattered had them. A [List] is one
// leader's, and is not safe for concurrent use.
//
//	a plan --> Update: does it matter? --> the caller marks all trackers stale
//	a tracker has a home, or a new stream --> MarkStale
//	at the end of a Step: TakeStale
package shares

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// MaxJobs is how many jobs trackers are told at most: those behind them are alike.
const MaxJobs = 32

// minChange is by how much a share must have changed for trackers to be told before the
// order changes.
const minChange = 0.1

// List is the list that trackers were told last.
type List struct {
	list    []wire.JobShare
	version int           // how many lists there were before
	at      time.Duration // when it was made
	stale   taskset.Set   // indexes of trackers that may have to be told
}

// List returns the list.
func (t *List) List() []wire.JobShare { return t.list }

// Version numbers the lists of one leader, from 1. The first one is empty.
func (t *List) Version() int { return t.version + 1 }

// Update takes a list over if it matters: another first job does at once, all else once a
// period.
func (t *List) Update(list []wire.JobShare, now, period time.Duration) bool {
	soon := now < t.at+period && t.version > 0
	if same(t.list, list) || soon && len(list) > 0 && len(t.list) > 0 && list[0].Job == t.list[0].Job {
		return false
	}
	t.list, t.at = list, now
	t.version++
	return true
}

// MarkStale marks a tracker that may not have the list: it got a home, or a new stream.
func (t *List) MarkStale(tracker int) { t.stale.Add(tracker) }

// TakeStale yields the marked trackers, and clears their marks.
func (t *List) TakeStale() iter.Seq[int] {
	owed := t.stale
	t.stale = taskset.Set{}
	return owed.All()
}

func same(a, b []wire.JobShare) bool {
	return slices.EqualFunc(a, b, func(x, y wire.JobShare) bool {
		return x.Job == y.Job && math.Abs(x.Share-y.Share) <= minChange
	})
}
