// Package placement chooses where the partitions of a job are gathered, their homes, and how
// long a partition that could be reduced waits at home for a slot. It reads no clock and
// sends nothing: package core says what is known, and carries out what is chosen.
//
// # Homes
//
// Homes are spread so that each tracker has as many as its reduce slots get through: more
// slots and faster ones get more. Of trackers that are equal in that, the order is
//
//  1. where the plan in force has the job's tasks end soonest, if it says so (HMHS);
//  2. where less is to be reduced of all jobs, in bytes for each slot at its speed;
//  3. each in turn, going on from job to job.
//
// A tracker where the partition's reduce has failed is a home only if there is no other.
//
// # Moves
//
// While the tracker of a ready partition has no free reduce slot and another one has, the
// partition waits for [Patience]. Then it moves: the other tracker gathers it again from the
// map outputs.
package placement

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/quernmr/quern/locality"
)

// Site is a tracker where a partition may be at home.
type Site struct {
	Tracker int     // its index
	JobLoad float64 // time that its slots need for the job's homes and one more, in partitions
	Rank    int     // its place in the plan's ranking; behind all others if it has none
	Load    float64 // time that its slots need for the homes of all jobs and one more, in bytes
	Turn    int     // lower is sooner, among equals
}

func (x *Site) compare(y *Site) int {
	return cmp.Or(cmp.Compare(x.JobLoad, y.JobLoad), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Load, y.Load), cmp.Compare(x.Turn, y.Turn))
}

// Sites is a heap of sites, the best first.
type Sites struct{ heap siteHeap }

// NewSites takes the sites over. It takes O(n).
func NewSites(sites []Site) *Sites {
	s := &Sites{sites}
	heap.Init(&s.heap)
	return s
}

// Len is how many sites there are.
func (s *Sites) Len() int { return len(s.heap) }

// Best is the place of the best site, which must exist, for a partition. Sites to avoid come
// behind all others. It takes O(1), or O(n) if the first is one to avoid.
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

// Tracker is the tracker of the site at a place.
func (s *Sites) Tracker(i int) int { return s.heap[i].Tracker }

// AddHome sorts the site at a place again, now that it has one more home: own and load are what
// its Own and Load are then, and it comes turns later. Places change. It takes O(log n).
func (s *Sites) AddHome(i int, own, load float64, turns int) {
	x := &s.heap[i]
	x.JobLoad, x.Load, x.Turn = own, load, x.Turn+turns
	heap.Fix(&s.heap, i)
}

type siteHeap []Site

func (h siteHeap) Len() int           { return len(h) }
func (h siteHeap) Less(a, b int) bool { return h[a].compare(&h[b]) < 0 }
func (h siteHeap) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *siteHeap) Push(any)          { panic("placement: sites are fixed") }
func (h *siteHeap) Pop() any          { panic("placement: sites are fixed") }

// quickMoves is how often a partition moves before it waits twice as long for each further
// move, up to maxDoublings.
const (
	normalMoves  = 2
	maxDoublings = 10
)

// Waiting is the input of Patience.
type Waiting struct {
	Rule       locality.Rule // for maps
	MoveTime   time.Duration // how long it would take to gather the partition elsewhere
	RemoteCost time.Duration // measured, of a map that is not local
	Moves      int           // of the partition so far

	// Slot predicts when the home's tracker has a slot for it; ok is false if nothing is known.
	Slot func() (at time.Duration, ok bool)
}

// Patience is how long a ready partition waits for a slot at home while another tracker has
// one. A fixed rule and the paper's say so. Without a rule, and by the dynamic one, it is as
// long as moving takes, or nothing when the slot at home is known to take longer than that.
func Patience(w Waiting) time.Duration {
	patience := w.MoveTime
	switch w.Rule.Kind {
	case locality.Fixed:
		patience = w.Rule.Delay
	case locality.Paper:
		patience = w.RemoteCost
	default:
		if at, ok := w.Slot(); ok && at > w.MoveTime {
			patience = 0
		}
	}
	if more := w.Moves - normalMoves; more >= 0 { // others were quicker each time
		patience = max(patience, w.MoveTime) << min(more+1, maxDoublings)
	}
	return patience
}
