package scheduler

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// PoolLimited makes a policy that ignores pools keep their bounds. If the policy gives a pool
// more than its Max or less than its Min, it must divide that number of slots among the pool's
// jobs alone. The result becomes the Max, or Min, of each of these jobs. Then the policy plans
// all jobs again.
//
// Jobs of a pool at its Max keep the predicted ends of the pool's separate plan. In the plan of
// all jobs each of them has a fixed maximum, so the policy would predict later ends.
type PoolLimited struct{ Policy Policy }

// maxPlans limits the plans of all jobs. If the last one exceeds a pool's Max, finish drops
// those slots.
const maxPlans = 8

// Plan implements [Policy], in up to maxPlans plans of all jobs and two for each pool. Without
// Pools it returns the policy's Plan.
func (w PoolLimited) Plan(s Snapshot) (Plan, error) {
	if len(s.Pools) == 0 {
		return w.Policy.Plan(s)
	}
	f, err := newPoolFitter(w.Policy, s)
	if err != nil {
		return Plan{}, err
	}
	plan, err := w.Policy.Plan(f.s)
	for range maxPlans - 1 {
		if err != nil {
			return Plan{}, err
		}
		var changed bool
		if changed, err = f.fit(plan); err == nil && !changed {
			break
		}
		if err == nil {
			plan, err = w.Policy.Plan(f.s)
		}
	}
	if err != nil {
		return Plan{}, err
	}
	f.finish(&plan)
	return plan, nil
}

// poolFitter lowers Max or raises Min of jobs in a snapshot until their pools keep their bounds.
type poolFitter struct {
	policy  Policy
	s       Snapshot
	members [][]int // by pool, indexes in s.Jobs; after setMax in order of precedence
	minSet  []bool  // by pool: its Min is divided among its jobs
	maxSet  []bool  // by pool: its Max is divided among its jobs
	index   map[wire.JobID]int
	ends    map[wire.JobID]float64 // of jobs in pools with maxSet
}

func newPoolFitter(policy Policy, s Snapshot) (*poolFitter, error) {
	f := &poolFitter{
		policy: policy, s: s, members: make([][]int, len(s.Pools)), minSet: make([]bool, len(s.Pools)), maxSet: make([]bool, len(s.Pools)),
		index: make(map[wire.JobID]int, len(s.Jobs)), ends: make(map[wire.JobID]float64),
	}
	f.s.Jobs = slices.Clone(s.Jobs)
	slices.SortStableFunc(f.s.Jobs, func(a, b Job) int { return a.ID.Compare(b.ID) })
	for i := range f.s.Jobs {
		j := &f.s.Jobs[i]
		f.index[j.ID] = i
		switch {
		case j.Pool < 0 || j.Pool > len(s.Pools):
			return nil, fmt.Errorf("%v: field Pool is %d of %d", j.ID, j.Pool, len(s.Pools))
		case j.Pool > 0:
			j.lowerMax(min(j.Max, s.Pools[j.Pool-1].Max)) // a job has at most its pool's Max
			f.members[j.Pool-1] = append(f.members[j.Pool-1], i)
		}
	}
	return f, nil
}

// lowerMax lowers Max and keeps the number of tasks.
func (j *Job) lowerMax(most int) {
	j.Tasks = max(j.Tasks, j.Max)
	j.Max = most
}

// fit sets bounds for the jobs of every pool above its Max or below its Min. It reports whether
// it changed any.
func (f *poolFitter) fit(plan Plan) (changed bool, err error) {
	slots := make([]int, len(f.s.Jobs))
	for _, t := range plan.Targets {
		if i, ok := f.index[t.Job]; ok {
			slots[i] = t.Slots
		}
	}
	for k, p := range f.s.Pools {
		planned, usable := 0, 0
		for _, i := range f.members[k] {
			planned += slots[i]
			usable += f.s.Jobs[i].Max
		}
		if least := min(p.Min, usable); planned < least && !f.minSet[k] {
			f.minSet[k], changed = true, true
			if err = f.setMin(k, least); err != nil {
				return false, err
			}
		}
		if planned > p.Max && !f.maxSet[k] {
			f.maxSet[k], changed = true, true
			if err = f.setMax(k, p.Max); err != nil {
				return false, err
			}
		}
	}
	return changed, nil
}

// divide asks the policy to divide slots among the jobs of pool k. Slots that the policy leaves
// go to the first job that can use them.
func (f *poolFitter) divide(k, slots int) ([]Target, error) {
	s := f.s
	s.Pools, s.Trackers, s.Measured, s.Slots = nil, nil, nil, slots
	s.Jobs = nil
	flows, jobs := make(map[int]bool), make(map[wire.JobID]bool)
	for _, i := range f.members[k] {
		j := f.s.Jobs[i]
		j.Pool = 0
		s.Jobs = append(s.Jobs, j)
		flows[j.Flow], jobs[j.ID] = j.Flow != 0, true
	}
	s.Later = slices.DeleteFunc(slices.Clone(s.Later), func(l LaterPhase) bool { return !flows[l.Flow] && !jobs[l.ID] })
	s.Transfers = slices.DeleteFunc(slices.Clone(s.Transfers), func(t Transfer) bool { return !jobs[t.ID] })
	plan, err := f.policy.Plan(s)
	if err != nil {
		return nil, err
	}
	if err := plan.Validate(s); err != nil {
		return nil, err
	}
	for _, t := range plan.Targets {
		slots -= t.Slots
	}
	for i := range plan.Targets {
		t := &plan.Targets[i]
		more := min(f.s.Jobs[f.index[t.Job]].Max-t.Slots, slots)
		t.Slots += more
		slots -= more
	}
	return plan.Targets, nil
}

// setMin divides a pool's guaranteed slots.
func (f *poolFitter) setMin(k, least int) error {
	targets, err := f.divide(k, least)
	for _, t := range targets {
		f.s.Jobs[f.index[t.Job]].Min = t.Slots
	}
	return err
}

// setMax divides a pool's maximum.
func (f *poolFitter) setMax(k, most int) error {
	targets, err := f.divide(k, most)
	if err != nil {
		return err
	}
	given := make(map[int]int, len(targets))
	order := make([]int, 0, len(f.members[k]))
	for _, t := range targets {
		i := f.index[t.Job]
		given[i] = t.Slots
		order = append(order, i)
		f.ends[t.Job] = t.End
	}
	for _, i := range f.members[k] {
		if _, named := given[i]; !named {
			order = append(order, i)
		}
		j := &f.s.Jobs[i]
		j.lowerMax(given[i])
		j.Min = min(j.Min, j.Max)
	}
	f.members[k] = order
	return nil
}

// finish drops slots above a pool's Max, adds jobs that the policy left out because their pool
// is full, and sets the ends of jobs in such pools.
func (f *poolFitter) finish(plan *Plan) {
	left := make([]int, len(f.s.Pools))
	for k, p := range f.s.Pools {
		left[k] = p.Max
	}
	named := make(map[wire.JobID]bool, len(plan.Targets))
	for x := range plan.Targets {
		t := &plan.Targets[x]
		named[t.Job] = true
		if i, ok := f.index[t.Job]; ok && f.s.Jobs[i].Pool > 0 {
			k := f.s.Jobs[i].Pool - 1
			t.Slots = min(t.Slots, left[k])
			left[k] -= t.Slots
		}
	}
	for k := range f.members {
		for _, i := range f.members[k] {
			if id := f.s.Jobs[i].ID; f.maxSet[k] && !named[id] {
				plan.Targets = append(plan.Targets, Target{Job: id})
			}
		}
	}
	for x := range plan.Targets {
		t := &plan.Targets[x]
		if end := f.ends[t.Job]; end > 0 {
			t.End = end
		}
	}
}

// validatePools is [Plan.Validate] for the bounds of pools.
func (p Plan) validatePools(s Snapshot) error {
	if len(s.Pools) == 0 {
		return nil
	}
	for _, j := range s.Jobs {
		if j.Pool < 0 || j.Pool > len(s.Pools) {
			return fmt.Errorf("%v: field Pool is %d of %d", j.ID, j.Pool, len(s.Pools))
		}
	}
	slots := p.slotsByPool(s)
	for k, pool := range s.Pools {
		if slots[k+1] > pool.Max {
			return fmt.Errorf("plan gives pool %d of the snapshot %d slots of at most %d", k+1, slots[k+1], pool.Max)
		}
	}
	return nil
}

// slotsByPool sums a plan's slots by pool. Index 0 is the jobs in no pool.
func (p Plan) slotsByPool(s Snapshot) []int {
	pools, slots := make(map[wire.JobID]int, len(s.Jobs)), make([]int, len(s.Pools)+1)
	for _, j := range s.Jobs {
		pools[j.ID] = j.Pool
	}
	for _, t := range p.Targets {
		slots[pools[t.Job]] += t.Slots
	}
	return slots
}

// checkPoolMinima reports the first pool that has less than its Min and can use more, if all minima
// fit the slots. slots is the result of slotsByPool.
func (p Plan) checkPoolMinima(s Snapshot, slots []int) error {
	usable, least := make([]int, len(slots)), make([]int, len(slots))
	for _, j := range s.Jobs {
		usable[j.Pool] += j.Max
		least[j.Pool] += j.Min
	}
	all := least[0]
	for k, pool := range s.Pools {
		all += max(least[k+1], min(pool.Min, usable[k+1]))
	}
	for k, pool := range s.Pools {
		if want := min(pool.Min, usable[k+1]); slots[k+1] < want && all <= s.Slots {
			return fmt.Errorf("plan gives pool %d of the snapshot %d slots of at least %d", k+1, slots[k+1], want)
		}
	}
	return nil
}
