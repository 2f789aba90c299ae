package pool

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Shape applies the pools to the jobs of a snapshot. Share is each job's part of all slots if
// weights fill the pools like water, and the goals' weights then divide a pool among its jobs:
// slots that a job cannot use go to its pool first. Policies that share evenly use it. They get
// parts of the pool's minimum and maximum as Min and Max; with whole, policies get the pools'
// bounds in the snapshot's Pools and divide them themselves.
//
// Shape ignores MaxRunning: the snapshot has only jobs that may run. O(J log J).
func (t *Table) Apply(s scheduler.Snapshot, poolOf func(wire.JobID) string, whole bool) scheduler.Snapshot {
	s.Jobs = slices.Clone(s.Jobs)
	members := make(map[string][]*scheduler.Job)
	for i := range s.Jobs {
		name := cmp.Or(poolOf(s.Jobs[i].ID), wire.DefaultPool)
		members[name] = append(members[name], &s.Jobs[i])
	}
	names := slices.Sorted(maps.Keys(members))
	shares := make([]scheduler.Share, len(names))
	for i, name := range names {
		p, _ := t.Find(name)
		slices.SortFunc(members[name], precedence)
		shares[i] = p.bounds(PhaseIndex(s.Phase), members[name])
	}
	fitting := scaled(shares, s.Slots)
	level := scheduler.WaterLevel(fitting, s.Slots)
	for i, name := range names {
		divide(members[name], shares[i], shares[i].At(level), whole)
		if p, _ := t.Find(name); whole && p.isBounded(PhaseIndex(s.Phase)) {
			s.Pools = append(s.Pools, scheduler.Pool{Min: fitting[i].Min, Max: shares[i].Max})
			for _, j := range members[name] {
				j.Pool = len(s.Pools)
			}
		}
	}
	return s
}

// bounds reports whether a pool bounds its jobs' slots.
func (p *Pool) isBounded(phase int) bool { return p.Min[phase] > 0 || p.Max[phase] != Unlimited }

// PhaseOf returns a phase's index in Min and Max.
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

// bound is a pool's bounds for its jobs: at most their maxima together, and its guarantee up to
// that.
func (p *Pool) bounds(phase int, jobs []*scheduler.Job) scheduler.Share {
	use := 0
	for _, j := range jobs {
		use += j.Max
	}
	if p.Max[phase] != Unlimited {
		use = min(use, p.Max[phase])
	}
	return scheduler.Share{Min: min(p.Min[phase], use), Max: use, Weight: p.Weight}
}

// scaled reduces minima that together exceed the slots.
func scaled(shares []scheduler.Share, slots int) []scheduler.Share {
	total := 0
	for _, s := range shares {
		total += s.Min
	}
	if total <= slots {
		return shares
	}
	shares = slices.Clone(shares)
	for i := range shares {
		shares[i].Min = int(float64(shares[i].Min) * float64(slots) / float64(total))
	}
	return shares
}

// divide gives the jobs of a pool their parts of its slots and, unless whole, of its bounds.
func divide(jobs []*scheduler.Job, bound scheduler.Share, slots float64, whole bool) {
	shares := make([]scheduler.Share, len(jobs))
	for i, j := range jobs {
		shares[i] = scheduler.Share{Max: j.Max, Weight: j.Goal.Weight}
	}
	for i, most := range scheduler.Waterline(shares, bound.Max) {
		shares[i].Max = most
		if !whole {
			jobs[i].Max = most
		}
	}
	for i, least := range scheduler.Waterline(shares, bound.Min) {
		if !whole {
			jobs[i].Min = least
		}
	}
	// In thousandths of a slot: pools without slots still have proportions.
	const fine = 1000
	for i := range shares {
		shares[i].Max *= fine
	}
	if slots >= float64(len(shares)) { // a share below one slot keeps no job waiting
		for i := range shares {
			shares[i].Min = min(fine, shares[i].Max)
		}
	}
	level := scheduler.WaterLevel(shares, int(math.Round(slots*fine)))
	for i, s := range shares {
		jobs[i].Share = max(s.At(level)/fine, 1.0/fine)
	}
}
