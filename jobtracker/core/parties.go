package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// party is a pool whose jobs may not have as many slots as they can use, or not all at
// a time. Its limits hold whatever the plan says.
type party struct {
	pool.Pool
	used  [2]int // slots of its jobs
	jobs  []*job // that have not ended, by number
	stale bool   // in Live.stale
}

// full says whether no more slots of a phase may be given to jobs of the pool.
func (p *party) full(phase int) bool {
	return p != nil && p.Max[phase] != pool.Unlimited && p.used[phase] >= p.Max[phase]
}

// makeParties takes the limits of the pool table in force over.
func (l *Live) makeParties() {
	l.parties, l.stale = make(map[string]*party), nil
	_, table := l.facts.Pools()
	for _, p := range table.Pools {
		if p.Max != [2]int{pool.Unlimited, pool.Unlimited} || p.MaxRunning != pool.Unlimited {
			l.parties[p.Name] = &party{Pool: p}
		}
	}
	for _, j := range l.order {
		j.party, j.barred = nil, false
		l.move(j)
	}
}

// join has a job in the party of its pool, if that is one.
func (l *Live) join(j *job) {
	if l.jobs[j.facts.N()] != j {
		return // it has ended
	}
	if p := l.parties[poolName(j.facts.Submission())]; p != j.party {
		l.part(j)
		if j.party = p; p == nil {
			return
		}
		for i := range p.used {
			p.used[i] += j.inSlots[i]
		}
		i, _ := slices.BinarySearchFunc(p.jobs, j.facts.N(), func(x *job, n int) int { return cmp.Compare(x.facts.N(), n) })
		p.jobs = slices.Insert(p.jobs, i, j)
		l.opened(p)
	}
	if j.party != nil {
		l.staled(j.party)
	}
}

// staled has it looked at which jobs of a party may have slots.
func (l *Live) staled(p *party) {
	if !p.stale {
		p.stale = true
		l.stale = append(l.stale, p)
	}
}

func (l *Live) admitAll() {
	for _, p := range l.stale {
		p.stale = false
		l.admit(p)
	}
	l.stale = l.stale[:0]
}

// part takes a job out of its party.
func (l *Live) part(j *job) {
	p := j.party
	if p == nil {
		return
	}
	j.party, j.barred = nil, false
	for i := range p.used {
		p.used[i] -= j.inSlots[i]
	}
	p.jobs = slices.DeleteFunc(p.jobs, func(x *job) bool { return x == j })
	l.staled(p)
	l.opened(p)
}

// takes counts a slot that a job has from now on, or no more.
func (l *Live) takes(j *job, phase, slots int) {
	j.inSlots[phase] += slots
	p := j.party
	if p == nil {
		return
	}
	before := p.full(phase)
	p.used[phase] += slots
	if p.full(phase) != before {
		l.opened(p)
	}
}

// opened has the jobs of a party looked at whose limits keep them out of the lines,
// or no longer do.
func (l *Live) opened(p *party) {
	for _, j := range p.jobs {
		l.move(j)
	}
}

// admit bars those jobs of a party that may not have slots while others have: those
// with slots keep their places, of the others the first by priority and number are next.
func (l *Live) admit(p *party) {
	if p.MaxRunning == pool.Unlimited {
		return
	}
	has := func(j *job) bool { return j.inSlots != [2]int{} }
	left := p.MaxRunning
	for _, j := range p.jobs {
		if has(j) {
			left--
		}
	}
	for rank := wire.VeryHigh; rank >= wire.VeryLow; rank-- {
		for _, j := range p.jobs {
			if j.facts.Submission().Terms().Priority != rank {
				continue
			}
			barred := false
			if !has(j) && j.runnable() && !j.facts.Submission().Suspended() {
				barred = left <= 0
				left--
			}
			if j.barred != barred {
				j.barred = barred
				l.move(j)
			}
		}
	}
}
