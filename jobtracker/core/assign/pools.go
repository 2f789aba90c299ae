package assign

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// CappedPool is a pool with a limit of slots or running jobs. Its limits override the plan.
type CappedPool struct {
	pool.Pool
	usedSlots [2]int // slots that its jobs have
	jobs      []*Job // jobs that have not ended, by number
	stale     bool   // in Assigner.stalePools
}

// Full reports whether the pool has all slots of a phase that its limit allows.
func (p *CappedPool) Full(phase int) bool {
	return p != nil && p.Max[phase] != pool.Unlimited && p.usedSlots[phase] >= p.Max[phase]
}

// SetPools puts the limits of a pool table into force.
func (a *Assigner) SetPools(table []pool.Pool) {
	a.pools, a.stalePools = make(map[string]*CappedPool), nil
	for _, p := range table {
		if p.Max != [2]int{pool.Unlimited, pool.Unlimited} || p.MaxRunning != pool.Unlimited {
			a.pools[p.Name] = &CappedPool{Pool: p}
		}
	}
	for _, j := range a.jobs {
		if j != nil {
			j.pool, j.barred = nil, false
			a.MarkChanged(j)
		}
	}
}

// Pool returns the job's capped pool, or nil.
func (j *Job) Pool() *CappedPool { return j.pool }

// Barred reports whether a job gets no slots since its pool has its maximum of running jobs.
func (j *Job) Barred() bool { return j.barred }

// joinPool adds a job to its pool, if the pool is capped.
func (a *Assigner) joinPool(j *Job) {
	if j.dropped {
		return
	}
	name, _ := a.cluster.Pool(j)
	if p := a.pools[name]; p != j.pool {
		a.leavePool(j)
		if j.pool = p; p == nil {
			return
		}
		for i := range p.usedSlots {
			p.usedSlots[i] += j.usedSlots[i]
		}
		i, _ := slices.BinarySearchFunc(p.jobs, j.number, func(x *Job, n int32) int { return cmp.Compare(x.number, n) })
		p.jobs = slices.Insert(p.jobs, i, j)
		a.markJobsOf(p)
	}
	if j.pool != nil {
		a.markStale(j.pool)
	}
}

// markStale makes barExcess check the jobs of a pool.
func (a *Assigner) markStale(p *CappedPool) {
	if !p.stale {
		p.stale = true
		a.stalePools = append(a.stalePools, p)
	}
}

func (a *Assigner) barExcess() {
	for _, p := range a.stalePools {
		p.stale = false
		a.barExcessOf(p)
	}
	a.stalePools = a.stalePools[:0]
}

// leavePool removes a job from its pool.
func (a *Assigner) leavePool(j *Job) {
	p := j.pool
	if p == nil {
		return
	}
	j.pool, j.barred = nil, false
	for i := range p.usedSlots {
		p.usedSlots[i] -= j.usedSlots[i]
	}
	p.jobs = without(p.jobs, j)
	a.markStale(p)
	a.markJobsOf(p)
}

// countSlots adds to the used slots of a job and its pool; slots may be negative.
func (a *Assigner) countSlots(j *Job, phase, slots int) {
	j.usedSlots[phase] += slots
	p := j.pool
	if p == nil {
		return
	}
	before := p.Full(phase)
	p.usedSlots[phase] += slots
	if p.Full(phase) != before {
		a.markJobsOf(p)
	}
}

// markJobsOf calls MarkChanged for all jobs of a pool.
func (a *Assigner) markJobsOf(p *CappedPool) {
	for _, j := range p.jobs {
		a.MarkChanged(j)
	}
}

// barExcessOf bars the jobs of a pool that exceed its maximum of running jobs. Jobs with slots
// are never barred; the others come in the order of priority and number.
func (a *Assigner) barExcessOf(p *CappedPool) {
	if p.MaxRunning == pool.Unlimited {
		return
	}
	has := func(j *Job) bool { return j.usedSlots != [2]int{} }
	left := p.MaxRunning
	for _, j := range p.jobs {
		if has(j) {
			left--
		}
	}
	for rank := wire.VeryHigh; rank >= wire.VeryLow; rank-- {
		for _, j := range p.jobs {
			if _, priority := a.cluster.Pool(j); priority != rank {
				continue
			}
			barred := false
			if !has(j) && a.cluster.Runnable(j) {
				barred = left <= 0
				left--
			}
			if j.barred != barred {
				j.barred = barred
				a.MarkChanged(j)
			}
		}
	}
}
