package pool

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Apply applies the pools to the jobs of a snapshot; poolOf returns the name of a job's pool. It
// sets each job's Share: the weights of pools divide the slots like water, then the weights of
// goals divide each pool among its jobs. Slots that a job cannot use go to its pool first.
//
// With keepPools the snapshot gets the pools' bounds in Pools, and the policy divides them.
// Otherwise each job's Min and Max become its parts of the pool's minimum and maximum.
//
// Apply ignores MaxRunning: the snapshot has only jobs that may run. O(J log J) for J jobs.
func (t *Table) Apply(s scheduler.Snapshot, poolOf func(wire.JobID) string, keepPools bool) scheduler.Snapshot {
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
	scaled := scaleMinima(shares, s.Slots)
	level := scheduler.WaterLevel(scaled, s.Slots)
	for i, name := range names {
		divide(members[name], shares[i], shares[i].At(level), keepPools)
		if p, _ := t.Find(name); keepPools && p.isBounded(PhaseIndex(s.Phase)) {
			s.Pools = append(s.Pools, scheduler.Pool{Min: scaled[i].Min, Max: shares[i].Max})
			for _, j := range members[name] {
				j.Pool = len(s.Pools)
			}
		}
	}
	return s
}

// isBounded reports whether a pool bounds its jobs' slots.
func (p *Pool) isBounded(phase int) bool { return p.Min[phase] > 0 || p.Max[phase] != Unlimited }

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

// bounds returns the pool's bounds for its present jobs: neither its maximum nor its minimum
// exceeds the sum of their maxima.
func (p *Pool) bounds(phase int, jobs []*scheduler.Job) scheduler.Share {
	usable := 0
	for _, j := range jobs {
		usable += j.Max
	}
	if p.Max[phase] != Unlimited {
		usable = min(usable, p.Max[phase])
	}
	return scheduler.Share{Min: min(p.Min[phase], usable), Max: usable, Weight: p.Weight}
}

// scaleMinima reduces minima that together exceed the slots.
func scaleMinima(shares []scheduler.Share, slots int) []scheduler.Share {
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
	level := scheduler.WaterLevel(shares, int(math.Round(slots*fine)))
	for i, s := range shares {
		jobs[i].Share = max(s.At(level)/fine, 1.0/fine)
	}
}
