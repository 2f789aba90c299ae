package scheduler

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Within has a policy that knows no pools keep their bounds. Where it gives a pool more
// than its Max, or less than its Min, it is asked how it would share these slots if there
// were only that pool; its answer becomes a Max, or a Min, of the pool's jobs, and it is
// asked for the whole again, for others have what one pool may not.
//
// Jobs of a pool that has its Max end when that answer says: a policy that takes such a
// Max for one of the job's own would see it last too long.
type Within struct{ Policy Policy }

// mostAsked is how often the policy is asked for the whole at most. What is too much of
// the last answer is taken off.
const mostAsked = 8

// Plan implements [Policy], in up to mostAsked plans of the policy and two for each pool.
// Without Pools it is the policy's own.
func (w Within) Plan(s Snapshot) (Plan, error) {
	if len(s.Pools) == 0 {
		return w.Policy.Plan(s)
	}
	f, err := newFitting(w.Policy, s)
	if err != nil {
		return Plan{}, err
	}
	plan, err := w.Policy.Plan(f.s)
	for range mostAsked - 1 {
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

// fitting is a snapshot whose jobs are given bounds that are their pools'.
type fitting struct {
	policy  Policy
	s       Snapshot
	members [][]int // by pool, places in s.Jobs; of those that are cut in the order of precedence
	raised  []bool  // by pool: its Min is its jobs'
	cut     []bool  // likewise its Max
	at      map[wire.JobID]int
	ends    map[wire.JobID]float64 // of jobs in pools that are cut
}

func newFitting(policy Policy, s Snapshot) (*fitting, error) {
	f := &fitting{
		policy: policy, s: s, members: make([][]int, len(s.Pools)), raised: make([]bool, len(s.Pools)), cut: make([]bool, len(s.Pools)),
		at: make(map[wire.JobID]int, len(s.Jobs)), ends: make(map[wire.JobID]float64),
	}
	f.s.Jobs = slices.Clone(s.Jobs)
	slices.SortStableFunc(f.s.Jobs, func(a, b Job) int { return a.ID.Compare(b.ID) })
	for i := range f.s.Jobs {
		j := &f.s.Jobs[i]
		f.at[j.ID] = i
		switch {
		case j.Pool < 0 || j.Pool > len(s.Pools):
			return nil, fmt.Errorf("%v: field Pool is %d of %d", j.ID, j.Pool, len(s.Pools))
		case j.Pool > 0:
			j.lowerTo(min(j.Max, s.Pools[j.Pool-1].Max)) // nobody has more than all
			f.members[j.Pool-1] = append(f.members[j.Pool-1], i)
		}
	}
	return f, nil
}

// lowerTo leaves it said how many tasks there are.
func (j *Job) lowerTo(most int) {
	j.Tasks = max(j.Tasks, j.Max)
	j.Max = most
}

// fit gives bounds to the jobs of all pools that have too much or too little, and says
// whether there are any.
func (f *fitting) fit(plan Plan) (changed bool, err error) {
	slots := make([]int, len(f.s.Jobs))
	for _, t := range plan.Targets {
		if i, ok := f.at[t.Job]; ok {
			slots[i] = t.Slots
		}
	}
	for k, p := range f.s.Pools {
		has, use := 0, 0
		for _, i := range f.members[k] {
			has += slots[i]
			use += f.s.Jobs[i].Max
		}
		if least := min(p.Min, use); has < least && !f.raised[k] {
			f.raised[k], changed = true, true
			if err = f.raise(k, least); err != nil {
				return false, err
			}
		}
		if has > p.Max && !f.cut[k] {
			f.cut[k], changed = true, true
			if err = f.lower(k, p.Max); err != nil {
				return false, err
			}
		}
	}
	return changed, nil
}

// alone is how the policy would share so many slots if there were only one pool. What it
// leaves goes to the first that can use it.
func (f *fitting) alone(k, slots int) ([]Target, error) {
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
	s.Later = slices.DeleteFunc(slices.Clone(s.Later), func(l Later) bool { return !flows[l.Flow] && !jobs[l.ID] })
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
		more := min(f.s.Jobs[f.at[t.Job]].Max-t.Slots, slots)
		t.Slots += more
		slots -= more
	}
	return plan.Targets, nil
}

// raise divides what is guaranteed to a pool.
func (f *fitting) raise(k, least int) error {
	targets, err := f.alone(k, least)
	for _, t := range targets {
		f.s.Jobs[f.at[t.Job]].Min = t.Slots
	}
	return err
}

// lower divides the most that a pool may have.
func (f *fitting) lower(k, most int) error {
	targets, err := f.alone(k, most)
	if err != nil {
		return err
	}
	given := make(map[int]int, len(targets))
	order := make([]int, 0, len(f.members[k]))
	for _, t := range targets {
		i := f.at[t.Job]
		given[i] = t.Slots
		order = append(order, i)
		f.ends[t.Job] = t.End
	}
	for _, i := range f.members[k] {
		if _, named := given[i]; !named {
			order = append(order, i)
		}
		j := &f.s.Jobs[i]
		j.lowerTo(given[i])
		j.Min = min(j.Min, j.Max)
	}
	f.members[k] = order
	return nil
}

// finish takes off what a pool has too much, names again those that have nothing since
// their pool may have no more, and says when jobs of such pools end.
func (f *fitting) finish(plan *Plan) {
	left := make([]int, len(f.s.Pools))
	for k, p := range f.s.Pools {
		left[k] = p.Max
	}
	named := make(map[wire.JobID]bool, len(plan.Targets))
	for x := range plan.Targets {
		t := &plan.Targets[x]
		named[t.Job] = true
		if i, ok := f.at[t.Job]; ok && f.s.Jobs[i].Pool > 0 {
			k := f.s.Jobs[i].Pool - 1
			t.Slots = min(t.Slots, left[k])
			left[k] -= t.Slots
		}
	}
	for k := range f.members {
		for _, i := range f.members[k] {
			if id := f.s.Jobs[i].ID; f.cut[k] && !named[id] {
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
	has := p.inPools(s)
	for k, pool := range s.Pools {
		if has[k+1] > pool.Max {
			return fmt.Errorf("plan gives pool %d of the snapshot %d slots of at most %d", k+1, has[k+1], pool.Max)
		}
	}
	return nil
}

// inPools is what a plan gives pools, before them the jobs in none.
func (p Plan) inPools(s Snapshot) []int {
	pools, has := make(map[wire.JobID]int, len(s.Jobs)), make([]int, len(s.Pools)+1)
	for _, j := range s.Jobs {
		pools[j.ID] = j.Pool
	}
	for _, t := range p.Targets {
		has[pools[t.Job]] += t.Slots
	}
	return has
}

// keepsPools reports the first pool that has less than its Min and could use it, where
// that and what jobs are to have fit the slots.
func (p Plan) keepsPools(s Snapshot, has []int) error {
	use, least := make([]int, len(has)), make([]int, len(has))
	for _, j := range s.Jobs {
		use[j.Pool] += j.Max
		least[j.Pool] += j.Min
	}
	all := least[0]
	for k, pool := range s.Pools {
		all += max(least[k+1], min(pool.Min, use[k+1]))
	}
	for k, pool := range s.Pools {
		if want := min(pool.Min, use[k+1]); has[k+1] < want && all <= s.Slots {
			return fmt.Errorf("plan gives pool %d of the snapshot %d slots of at least %d", k+1, has[k+1], want)
		}
	}
	return nil
}
