// Package placement chooses the home of each partition, which is the tracker that gathers it. It
// also decides how long a ready partition waits for a slot at home. It has no I/O and reads no
// clock: package core passes the input and carries out the choice.
//
// # Homes
//
// A tracker gets homes in proportion to the number and speed of its reduce slots. If trackers have
// equal load from the job, these rules decide, in this order:
//
//  1. the plan's ranking of trackers: the one where the job's tasks end soonest comes first (HMHS);
//  2. fewer bytes to reduce for all jobs, per slot at its speed;
//  3. an idle worker of the job, which saves the start of a process;
//  4. round-robin, across jobs.
//
// A tracker where the partition's reduce has failed becomes its home only if there is no other.
//
// # Moves
//
// A ready partition waits for [MaxWait] while its home has no free reduce slot and another
// tracker has one. Then it moves: the other tracker gathers it again from the map outputs.
package placement

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/quernmr/quern/locality"
)

// Site is a tracker that can be a partition's home.
type Site struct {
	Tracker int     // index of the tracker
	JobLoad float64 // time to reduce the job's homes there and one more, in partitions
	Rank    int     // position in the plan's ranking; last if the plan does not rank it
	Load    float64 // time to reduce the homes of all jobs there and one more, in bytes
	Turn    int     // for round-robin: lower comes first
}

func (x *Site) compare(y *Site) int {
	return cmp.Or(cmp.Compare(x.JobLoad, y.JobLoad), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Load, y.Load), cmp.Compare(x.Turn, y.Turn))
}

// Sites is a heap of sites with the best one first.
type Sites struct{ heap siteHeap }

// NewSites makes a heap in the memory of the given sites, in O(n).
func NewSites(sites []Site) *Sites {
	s := &Sites{sites}
	heap.Init(&s.heap)
	return s
}

// Len is how many sites there are.
func (s *Sites) Len() int { return len(s.heap) }

// Best returns the position of the best site for a partition; there must be a site. It returns a
// site to avoid only if there is no other. It takes O(1), or O(n) if the first is to be avoided.
func (s *Sites) Best(avoid func(tracker int) bool) int {
	if !avoid(s.heap[0].Tracker) {
		return 0
	}
	best := 0
	for i := range s.heap {
		if !avoid(s.heap[i].Tracker) && (best == 0 || s.heap[i].compare(&s.heap[best]) < 0) {
			best = i
		}
	}
	return best
}

// Tracker returns the tracker of the site at a position.
func (s *Sites) Tracker(i int) int { return s.heap[i].Tracker }

// AddHome updates the site at position i, which got one more home: it sets JobLoad and Load and
// adds turns to Turn. Positions of sites change. It takes O(log n).
func (s *Sites) AddHome(i int, jobLoad, load float64, turns int) {
	x := &s.heap[i]
	x.JobLoad, x.Load, x.Turn = jobLoad, load, x.Turn+turns
	heap.Fix(&s.heap, i)
}

type siteHeap []Site

func (h siteHeap) Len() int           { return len(h) }
func (h siteHeap) Less(a, b int) bool { return h[a].compare(&h[b]) < 0 }
func (h siteHeap) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *siteHeap) Push(any)          { panic("placement: sites are fixed") }
func (h *siteHeap) Pop() any          { panic("placement: sites are fixed") }

// After normalMoves moves, a partition waits twice as long before each further move. The wait
// doubles at most maxDoublings times.
const (
	normalMoves  = 2
	maxDoublings = 10
)

// WaitInput is the input of MaxWait.
type WaitInput struct {
	Rule       locality.Rule // the delay rule for maps
	MoveTime   time.Duration // predicted, to gather the partition on another tracker
	RemoteCost time.Duration // measured extra time of a map that is not local
	Moves      int           // how often the partition has moved

	// Slot predicts how long its home takes to have a free slot; ok is false without a prediction.
	Slot func() (wait time.Duration, ok bool)
}

// MaxWait is how long a ready partition waits for a slot at home while another tracker has one.
// The rules fixed and paper define it. With the rules none and dynamic it is MoveTime, or 0 if
// the slot at home takes longer than that.
func MaxWait(w WaitInput) time.Duration {
	wait := w.MoveTime
	switch w.Rule.Kind {
	case locality.Fixed:
		wait = w.Rule.Delay
	case locality.Paper:
		wait = w.RemoteCost
	default:
		if slot, ok := w.Slot(); ok && slot > w.MoveTime {
			wait = 0
		}
	}
	if more := w.Moves - normalMoves; more >= 0 { // after each move, another task took the slot
		wait = max(wait, w.MoveTime) << min(more+1, maxDoublings)
	}
	return wait
}
