package assign

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// CappedPool is a pool whose jobs may not have as many slots as they can use, or not all at
// a time. Its limits hold whatever the plan says.
type CappedPool struct {
	pool.Pool
	used   [2]int // slots of its jobs
	jobs   []*Job // that have not ended, by number
	uneven bool   // in Assigner.uneven
}

// Full says whether no more slots of a phase may be given to jobs of the pool.
func (p *CappedPool) Full(phase int) bool {
	return p != nil && p.Max[phase] != pool.Unlimited && p.used[phase] >= p.Max[phase]
}

// SetPools takes over the limits of the pool table in force.
func (a *Assigner) SetPools(table []pool.Pool) {
	a.pools, a.uneven = make(map[string]*CappedPool), nil
	for _, p := range table {
		if p.Max != [2]int{pool.Unlimited, pool.Unlimited} || p.MaxRunning != pool.Unlimited {
			a.pools[p.Name] = &CappedPool{Pool: p}
		}
	}
	for _, j := range a.jobs {
		if j != nil {
			j.pool, j.barred = nil, false
			a.Move(j)
		}
	}
}

// Pool is the capped pool that a job is in, or nil.
func (j *Job) Pool() *CappedPool { return j.pool }

// Barred says whether a job gets no slots since its pool runs as many others as it may.
func (j *Job) Barred() bool { return j.barred }

// join has a job in its pool, if that is capped.
func (a *Assigner) join(j *Job) {
	if j.dropped {
		return
	}
	name, _ := a.cluster.Pool(j)
	if p := a.pools[name]; p != j.pool {
		a.part(j)
		if j.pool = p; p == nil {
			return
		}
		for i := range p.used {
			p.used[i] += j.inSlots[i]
		}
		i, _ := slices.BinarySearchFunc(p.jobs, j.number, func(x *Job, n int32) int { return cmp.Compare(x.number, n) })
		p.jobs = slices.Insert(p.jobs, i, j)
		a.moveAll(p)
	}
	if j.pool != nil {
		a.setUneven(j.pool)
	}
}

// setUneven has it looked at which jobs of a pool may have slots.
func (a *Assigner) setUneven(p *CappedPool) {
	if !p.uneven {
		p.uneven = true
		a.uneven = append(a.uneven, p)
	}
}

func (a *Assigner) admitAll() {
	for _, p := range a.uneven {
		p.uneven = false
		a.admit(p)
	}
	a.uneven = a.uneven[:0]
}

// part takes a job out of its pool.
func (a *Assigner) part(j *Job) {
	p := j.pool
	if p == nil {
		return
	}
	j.pool, j.barred = nil, false
	for i := range p.used {
		p.used[i] -= j.inSlots[i]
	}
	p.jobs = without(p.jobs, j)
	a.setUneven(p)
	a.moveAll(p)
}

// takes counts a slot that a job has from now on, or no more.
func (a *Assigner) takes(j *Job, phase, slots int) {
	j.inSlots[phase] += slots
	p := j.pool
	if p == nil {
		return
	}
	before := p.Full(phase)
	p.used[phase] += slots
	if p.Full(phase) != before {
		a.moveAll(p)
	}
}

// moveAll has the jobs of a pool looked at whose limits keep them out of the lines,
// or no longer do.
func (a *Assigner) moveAll(p *CappedPool) {
	for _, j := range p.jobs {
		a.Move(j)
	}
}

// admit bars those jobs of a pool that may not have slots while others have: those
// with slots keep their places, of the others the first by priority and number are next.
func (a *Assigner) admit(p *CappedPool) {
	if p.MaxRunning == pool.Unlimited {
		return
	}
	has := func(j *Job) bool { return j.inSlots != [2]int{} }
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
				a.Move(j)
			}
		}
	}
}
