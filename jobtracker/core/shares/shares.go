// Package shares keeps what trackers are told of how jobs share what the homes fetch: the
// portions of the plan for maps, as the last one that mattered had them. A [Told] is one
// leader's, and is not safe for concurrent use.
//
//	a plan --> Update: does it matter? --> all trackers are owed the list
//	a tracker has a home, or a new stream --> Owe
//	at the end of a Step: Owed
package shares

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// Most is how many jobs trackers are told at most: those behind them are alike.
const Most = 32

// matters is by how much a share must have changed for trackers to be told before the
// order changes.
const matters = 0.1

// Told is the list that trackers were told last.
type Told struct {
	list    []wire.JobShare
	version int           // how many lists there were before
	at      time.Duration // when it was made
	owed    taskset.Set   // indexes of trackers that may have to be told
}

// List is the list.
func (t *Told) List() []wire.JobShare { return t.list }

// Version numbers the lists of one leader, from 1. The first one is empty.
func (t *Told) Version() int { return t.version + 1 }

// Update takes a list over if it matters: another first job does at once, all else once a
// period.
func (t *Told) Update(list []wire.JobShare, now, period time.Duration) bool {
	soon := now < t.at+period && t.version > 0
	if same(t.list, list) || soon && len(list) > 0 && len(t.list) > 0 && list[0].Job == t.list[0].Job {
		return false
	}
	t.list, t.at = list, now
	t.version++
	return true
}

// Owe has a tracker told that has a home, or may have missed what it was told.
func (t *Told) Owe(tracker int) { t.owed.Add(tracker) }

// Owed yields the trackers that may have to be told, and owes none any more.
func (t *Told) Owed() iter.Seq[int] {
	owed := t.owed
	t.owed = taskset.Set{}
	return owed.All()
}

func same(a, b []wire.JobShare) bool {
	return slices.EqualFunc(a, b, func(x, y wire.JobShare) bool {
		return x.Job == y.Job && math.Abs(x.Share-y.Share) <= matters
	})
}
