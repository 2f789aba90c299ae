package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Apply applies the pools to the jobs of a snapshot; poolOf returns the name of a job's pool. It
// sets each job's Share: the weights of pools divide the slots like water, from the root on, then
// the weights of goals divide each pool among its jobs. Slots that a job cannot use go to its pool
// first, then to the pools beside it.
//
// With keepPools the snapshot gets the pools' bounds in Pools, and the policy divides them.
// Otherwise each job's Min and Max become its parts of the pool's minimum and maximum. The bounds
// of an inner pool are always divided among the pools in it, by weight.
//
// Apply ignores MaxRunning: the snapshot has only jobs that may run. O(J log J) for J jobs.
func (t *Table) Apply(s scheduler.Snapshot, poolOf func(wire.JobID) string, keepPools bool) scheduler.Snapshot {
	s.Jobs = slices.Clone(s.Jobs)
	leaves := t.tree(&s, poolOf).leaves
	shares := make([]scheduler.Share, len(leaves))
	for i, n := range leaves {
		slices.SortFunc(n.jobs, precedence)
		shares[i] = n.bounds
	}
	for i, scaled := range scaleMinima(shares, float64(s.Slots)) {
		n := leaves[i]
		divide(n.jobs, n.bounds, n.share, keepPools)
		if keepPools && n.isBounded(PhaseIndex(s.Phase)) {
			s.Pools = append(s.Pools, scheduler.Pool{Min: scaled.Min, Max: n.bounds.Max})
			for _, j := range n.jobs {
				j.Pool = len(s.Pools)
			}
		}
	}
	return s
}

// isBounded reports whether a pool, or one around it, bounds its jobs' slots.
func (n *node) isBounded(phase int) bool {
	usable := 0
	for _, j := range n.jobs {
		usable += j.Max
	}
	return n.pool.Min[phase] > 0 || n.pool.Max[phase] != Unlimited || n.bounds.Min > 0 || n.bounds.Max < usable
}

// Standing compares the slots of a pool with its shares, for preemption.
type Standing struct {
	Pool    Pool
	Running int     // slots of its jobs in the snapshot
	Demand  int     // slots that these could use
	Min     int     // guaranteed; at most Demand
	Fair    float64 // its fair share of the slots among the pools with jobs: Hadoop's instantaneous one
	Share   float64 // the same, with what other pools cannot use
}

// Standings returns the standings of the pools with jobs in a snapshot, by name. The snapshot is one
// before Apply, or one that Apply returned for the same table with keepPools.
func (t *Table) Standings(s *scheduler.Snapshot, poolOf func(wire.JobID) string) []Standing {
	leaves := t.tree(s, poolOf).leaves
	all := make([]Standing, len(leaves))
	shares := make([]scheduler.Share, len(leaves))
	for i, n := range leaves {
		shares[i] = n.bounds
	}
	for i, scaled := range scaleMinima(shares, float64(s.Slots)) {
		n := leaves[i]
		all[i] = Standing{Pool: n.pool, Demand: n.bounds.Max, Min: scaled.Min, Fair: n.fair, Share: n.share}
		for _, j := range n.jobs {
			all[i].Running += j.Running
		}
	}
	return all
}

// PhaseIndex returns a phase's index in Min and Max.
func PhaseIndex(k wire.Kind) int {
	if k == wire.Reduce {
		return 1
	}
	return 0
}

// precedence orders the jobs of a pool: the first gets leftover slots.
func precedence(a, b *scheduler.Job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Arrived, b.Arrived), a.ID.Compare(b.ID))
}

// divide sets the Share of a pool's jobs to their parts of its slots. Without keepPools it also
// sets their Min and Max to parts of the pool's bounds.
func divide(jobs []*scheduler.Job, bounds scheduler.Share, slots float64, keepPools bool) {
	shares := make([]scheduler.Share, len(jobs))
	for i, j := range jobs {
		shares[i] = scheduler.Share{Max: j.Max, Weight: j.Goal.Weight}
	}
	for i, most := range scheduler.Waterline(shares, bounds.Max) {
		shares[i].Max = most
		if !keepPools {
			jobs[i].Max = most
		}
	}
	for i, least := range scheduler.Waterline(shares, bounds.Min) {
		if !keepPools {
			jobs[i].Min = least
		}
	}
	// Thousandths of a slot keep the proportions in a pool with fewer slots than jobs.
	const fine = 1000
	for i := range shares {
		shares[i].Max *= fine
	}
	if slots >= float64(len(shares)) { // enough for every job: none gets less than a slot
		for i := range shares {
			shares[i].Min = min(fine, shares[i].Max)
		}
	}
	level := scheduler.WaterLevel(shares, math.Round(slots*fine))
	for i, s := range shares {
		jobs[i].Share = max(s.At(level)/fine, 1.0/fine)
	}
}
