// Package shares keeps the list of job shares that the leader sends to trackers: trackers divide
// the bandwidth for gathering among jobs by the shares of the plan for maps. A small change of
// the plan does not replace the list. A [List] is not safe for concurrent use.
//
//	a new plan                              Update; if it replaces the list, the caller
//	                                        marks all trackers
//	a tracker gets a home, or a new stream  MarkStale
//	at the end of a Step                    TakeStale; the caller sends the list
package shares

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// MaxJobs bounds the list. Trackers treat all other jobs alike.
const MaxJobs = 32

// minChange is the smallest change of a share that replaces the list.
const minChange = 0.1

// List is the list of job shares that trackers should have.
type List struct {
	list    []wire.JobShare
	version int           // number of lists before this one
	at      time.Duration // when this list replaced the last one
	stale   taskset.Set   // indexes of trackers that may not have the list
}

// List returns the list.
func (t *List) List() []wire.JobShare { return t.list }

// Version numbers the lists of one leader, from 1. The first one is empty.
func (t *List) Version() int { return t.version + 1 }

// Update replaces the list if it differs enough, and reports whether it did. Another first job
// replaces it at once, other changes once a period.
func (t *List) Update(list []wire.JobShare, now, period time.Duration) bool {
	tooSoon := now < t.at+period && t.version > 0
	if similar(t.list, list) || tooSoon && len(list) > 0 && len(t.list) > 0 && list[0].Job == t.list[0].Job {
		return false
	}
	t.list, t.at = list, now
	t.version++
	return true
}

// MarkStale marks a tracker that may not have the list.
func (t *List) MarkStale(tracker int) { t.stale.Add(tracker) }

// TakeStale yields the marked trackers, and clears their marks.
func (t *List) TakeStale() iter.Seq[int] {
	marked := t.stale
	t.stale = taskset.Set{}
	return marked.All()
}

func similar(a, b []wire.JobShare) bool {
	return slices.EqualFunc(a, b, func(x, y wire.JobShare) bool {
		return x.Job == y.Job && math.Abs(x.Share-y.Share) <= minChange
	})
}
