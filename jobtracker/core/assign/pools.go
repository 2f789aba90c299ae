package assign

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TablePool is a pool of the table. Its limits of slots and running jobs override the plan.
type TablePool struct {
	pool.Pool
	usedSlots [2]int // slots that its jobs have
	reserved  int    // map slots that are reserved for its jobs in this pass
	jobs      []*Job // jobs that have not ended, by number

	// A pool with a maximum of running jobs bars others from slots. Jobs with slots are never
	// barred.
	running    int    // jobs with slots
	candidates []*Job // runnable jobs without slots, by priority and number
	admitted   int    // the first candidates, which are not barred
	stale      bool   // in Assigner.stalePools
}

// Full reports whether the pool has all slots of a phase that its limit allows.
func (p *TablePool) Full(phase int) bool {
	if p == nil || p.Max[phase] == pool.Unlimited {
		return false
	}
	used := p.usedSlots[phase]
	if phase == Map {
		used += p.reserved
	}
	return used >= p.Max[phase]
}

// SetPools puts the limits of a pool table into force. It costs O(jobs) if pools enter or leave the
// table, and O(pools) otherwise: pools without limits are kept, too.
func (a *Assigner) SetPools(table []pool.Pool) {
	before := a.pools
	a.pools = make(map[string]*TablePool)
	added := false
	for _, p := range table {
		c := before[p.Name]
		if c == nil {
			c, added = &TablePool{Pool: p}, true
		}
		barred := c.MaxRunning != p.MaxRunning && (c.MaxRunning == pool.Unlimited || p.MaxRunning == pool.Unlimited)
		c.Pool, a.pools[p.Name] = p, c
		a.updateFull(c.Name)
		a.markStale(c)
		if barred {
			a.markAll(c.jobs)
		}
	}
	for name, c := range before { // the order does not matter: MarkChanged only collects jobs
		if a.pools[name] == nil {
			a.forgetPool(c)
			a.updateFull(c.Name)
		}
	}
	if added {
		a.markJobs(a.jobs)
	}
}

// markAll calls MarkChanged for jobs.
func (a *Assigner) markAll(jobs []*Job) {
	for _, j := range jobs {
		a.MarkChanged(j)
	}
}

// forgetPool takes the jobs of a pool that left the table from its lists, all at once.
func (a *Assigner) forgetPool(p *TablePool) {
	for _, j := range p.jobs {
		j.candidate, j.barred = candidacy{}, false
		a.MarkChanged(j)
	}
	p.jobs, p.candidates, p.admitted, p.running = nil, nil, 0, 0
}

// markJobs calls MarkChanged for the jobs that have another pool of the table now.
func (a *Assigner) markJobs(jobs []*Job) {
	for _, j := range jobs {
		if j != nil {
			if name, _ := a.cluster.Pool(j); a.pools[name] != j.pool {
				a.MarkChanged(j)
			}
		}
	}
}

// Pool returns the pool of the table that the job is in, or nil.
func (j *Job) Pool() *TablePool { return j.pool }

// Barred reports whether a job gets no slots since its pool has its maximum of running jobs.
func (j *Job) Barred() bool { return j.barred }

// updatePools updates the pools of the marked jobs, and marks those that are barred now, or are no
// longer.
func (a *Assigner) updatePools() {
	if len(a.pools) == 0 && a.pooled == 0 {
		return
	}
	for _, j := range a.changed {
		a.joinPool(j)
	}
	for _, p := range a.stalePools {
		p.stale = false
		a.barExcess(p)
	}
	a.stalePools = a.stalePools[:0]
}

// joinPool adds a job to its pool, if it is in the table.
func (a *Assigner) joinPool(j *Job) {
	if j.dropped {
		return
	}
	name, _ := a.cluster.Pool(j)
	if p := a.pools[name]; p != j.pool {
		a.leavePool(j)
		j.pool, j.usesAnySlot = p, false // free slots may be local to it, see updateLines
		j.group = a.groupOf(keyOf(j))
		if p != nil {
			a.pooled++
			a.countPoolSlots(p, j.usedSlots, 1)
			i, _ := slices.BinarySearchFunc(p.jobs, j.number, func(x *Job, n int32) int { return cmp.Compare(x.number, n) })
			p.jobs = slices.Insert(p.jobs, i, j)
		}
	}
	a.updateCandidate(j)
}

// leavePool removes a job from its pool.
func (a *Assigner) leavePool(j *Job) {
	p := j.pool
	if p == nil {
		return
	}
	a.setCandidate(j, candidacy{})
	a.countPoolSlots(p, j.usedSlots, -1)
	if i, found := slices.BinarySearchFunc(p.jobs, j.number, func(x *Job, n int32) int { return cmp.Compare(x.number, n) }); found {
		p.jobs = slices.Delete(p.jobs, i, i+1)
	}
	j.pool, j.barred = nil, false
	a.pooled--
}

// countSlots adds to the used slots of a job and its pool; slots may be negative.
func (a *Assigner) countSlots(j *Job, phase, slots int) {
	j.usedSlots[phase] += slots
	a.usedSlots[phase] += slots
	j.use.Slots[phase] += slots
	if p := j.pool; p != nil {
		before := p.Full(phase)
		if p.usedSlots[phase] += slots; p.Full(phase) != before {
			a.updateFull(p.Name)
		}
	}
}

// countPoolSlots adds slots of a job to its pool, sign times.
func (a *Assigner) countPoolSlots(p *TablePool, slots [2]int, sign int) {
	for i := range slots {
		p.usedSlots[i] += sign * slots[i]
	}
	a.updateFull(p.Name)
}

// markStale makes updatePools check which jobs of a pool are barred.
func (a *Assigner) markStale(p *TablePool) {
	if !p.stale {
		p.stale = true
		a.stalePools = append(a.stalePools, p)
	}
}

// candidacy is how a job counts for its pool's maximum of running jobs.
type candidacy struct {
	runs     bool // it has slots
	waits    bool // it has none, and is runnable: it is in TablePool.candidates
	priority wire.Priority
}

// updateCandidate updates how a job counts for its pool.
func (a *Assigner) updateCandidate(j *Job) {
	if j.pool == nil {
		return
	}
	if j.pool.MaxRunning == pool.Unlimited {
		a.setCandidate(j, candidacy{})
		return
	}
	c := candidacy{runs: j.usedSlots != [2]int{}}
	c.waits = !c.runs && a.cluster.Runnable(j)
	if c.waits {
		_, c.priority = a.cluster.Pool(j)
	}
	a.setCandidate(j, c)
}

func (a *Assigner) setCandidate(j *Job, to candidacy) {
	if j.candidate == to {
		return
	}
	p := j.pool
	if j.candidate.waits {
		i := p.find(j)
		p.candidates = slices.Delete(p.candidates, i, i+1)
		if i < p.admitted {
			p.admitted--
		}
	}
	if j.candidate.runs {
		p.running--
	}
	j.candidate = to
	barred := false
	if to.runs {
		p.running++
	}
	if to.waits {
		i := p.find(j)
		p.candidates = slices.Insert(p.candidates, i, j)
		if barred = i >= p.admitted; !barred {
			p.admitted++
		}
	}
	if j.barred != barred {
		j.barred = barred
		a.MarkChanged(j)
	}
	a.markStale(p)
}

// find returns the index of a job in candidates, or where to insert it.
func (p *TablePool) find(j *Job) int {
	i, _ := slices.BinarySearchFunc(p.candidates, j, func(x, y *Job) int {
		return cmp.Or(cmp.Compare(y.candidate.priority, x.candidate.priority), cmp.Compare(x.number, y.number))
	})
	return i
}

// barExcess bars the candidates of a pool that exceed its maximum of running jobs, and no others.
func (a *Assigner) barExcess(p *TablePool) {
	admitted := len(p.candidates)
	if p.MaxRunning != pool.Unlimited {
		admitted = min(max(p.MaxRunning-p.running, 0), admitted)
	}
	for ; p.admitted > admitted; p.admitted-- {
		a.setBarred(p.candidates[p.admitted-1], true)
	}
	for ; p.admitted < admitted; p.admitted++ {
		a.setBarred(p.candidates[p.admitted], false)
	}
}

func (a *Assigner) setBarred(j *Job, barred bool) {
	if j.barred != barred {
		j.barred = barred
		a.MarkChanged(j)
	}
}
