package core

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
)

// Limits of users, and of pools with others in them, concern jobs of several pools. The leader
// divides them when a plan is due: it decides which jobs may begin to run, and gives
// each pool its part of the maxima around it. The assigner keeps these parts like a pool's own
// maximum. In between no limit can be exceeded, since the parts together never exceed it.

// poolLimits is the state of limits that concern several pools.
type poolLimits struct {
	running bool            // there are limits of running jobs: jobs need heldBy to be empty
	slots   bool            // there are limits of slots
	parts   map[string]int  // by pool and phase, see partKey
	parted  map[string]bool // names of pools with parts
	holder  *pool.Holder
	held    [2]bool // the jobs of the next plan are held or not, as the limits say
	kept    [2]bool // the limits are kept for the next plan
}

// notChecked is why a new job is held until the next plan.
const notChecked = "the next plan checks the limits of its user and of the pools around its own"

// partKey is the key of a pool's part of the slots of a phase.
func partKey(name string, phase int) string { return name + "/" + phaseNames[phase] }

// setPools passes the limits of the pool table to the assigner.
func (l *leader) setPools() {
	_, table := l.facts.Pools()
	l.sharing.limits = poolLimits{
		running: table.LimitsRunning(), slots: table.LimitsInner(), holder: table.NewHolder(),
		parts: make(map[string]int), parted: make(map[string]bool),
	}
	for phase := range l.phases {
		l.divideSlots(phase)
	}
	l.assign.SetPools(l.limitedPools())
	l.limitAhead()
	l.charge(len(l.order) / 8)
	l.holdJobs()
}

// limitedPools lists the pools that have or take jobs, with their parts of the maxima around them.
func (l *leader) limitedPools() []pool.Pool {
	_, table := l.facts.Pools()
	pools := slices.DeleteFunc(slices.Clone(table.Pools), func(p pool.Pool) bool { return p.Inner })
	for _, name := range slices.Sorted(maps.Keys(l.sharing.limits.parted)) { // others may have left the table
		if !slices.ContainsFunc(pools, func(p pool.Pool) bool { return p.Name == name }) {
			pools = append(pools, pool.Pool{Name: name, Max: [2]int{pool.Unlimited, pool.Unlimited}, MaxRunning: pool.Unlimited})
		}
	}
	for i := range pools {
		for phase := range l.phases {
			if part, ok := l.sharing.limits.parts[partKey(pools[i].Name, phase)]; ok {
				pools[i].Max[phase] = part
			}
		}
	}
	return pools
}

// waitForPart gives a pool no slots until the next division, if jobs come to it that were accepted before it
// left the table, or became an inner pool, and a maximum around it holds.
func (l *leader) waitForPart(name string) {
	if !l.sharing.limits.slots || l.sharing.limits.parted[name] {
		return
	}
	if _, table := l.facts.Pools(); !table.NeedsPart(name) {
		return
	}
	for phase := range l.phases {
		l.sharing.limits.parts[partKey(name, phase)] = 0
	}
	l.sharing.limits.parted[name] = true
	l.assign.SetPools(l.limitedPools())
}

// keepLimits decides which jobs may run, and divides the maxima around pools, for each plan that is due. The plan
// waits for that, see mayPlan.
func (l *leader) keepLimits() {
	x := &l.sharing.limits
	if !x.running && !x.slots {
		return
	}
	changed := false
	for i := range l.phases {
		if !l.isDue(&l.phases[i]) || x.kept[i] {
			continue
		}
		if x.running && !x.held[i] {
			if l.works.holding == nil {
				l.holdJobs()
			}
			if l.works.holding != nil {
				continue
			}
		}
		x.kept[i], x.held[i] = true, false
		changed = l.divideSlots(i) || changed
	}
	if changed {
		l.assign.SetPools(l.limitedPools())
	}
}

// mayPlan reports whether the limits are kept for the next plan of a phase. The plan after it needs that again.
func (l *leader) mayPlan(phase int) bool {
	x := &l.sharing.limits
	kept := x.kept[phase] || !x.running && !x.slots
	x.kept[phase] = false
	return kept
}

// divideSlots computes the pools' parts of the slots of a phase. It reports whether any has changed.
func (l *leader) divideSlots(phase int) (changed bool) {
	if !l.sharing.limits.slots {
		return false
	}
	l.assign.PlaceChanged()
	use := make(map[string]pool.Use)
	for name, u := range l.assign.PoolUses() {
		use[name] = pool.Use{Running: u.Slots[phase], Demand: u.Slots[phase] + u.Waiting[phase]}
	}
	_, table := l.facts.Pools()
	for name, part := range table.Parts(phase, use) {
		key := partKey(name, phase)
		if old, ok := l.sharing.limits.parts[key]; !ok || old != part {
			l.sharing.limits.parts[key], l.sharing.limits.parted[name], changed = part, true, true
		}
	}
	return changed
}

// holding is the work of deciding which jobs may begin to run by the limits of users and pools. It visits all
// jobs, and decides. Then it holds jobs, and at last lets others begin. If a job begins that it would hold, the work
// begins again: the place of this job may have been given to another one.
type holding struct {
	jobRound
	jobs       []*job
	candidates []pool.Candidate // the same jobs
	which      []bool           // they are candidates
	why        []string         // by job; nil: not decided yet
	next       int              // in jobs
	releases   bool             // all jobs to hold are held
}

// minKept is how many limits of users in pools are kept beyond two for each job, see pool.Holder.
const minKept = 1000

// holdJobs begins to decide which jobs may begin to run, and ends at once if there are few.
func (l *leader) holdJobs() {
	if x := &l.sharing.limits; x.holder.Kept() > 2*len(l.order)+minKept {
		_, table := l.facts.Pools()
		x.holder = table.NewHolder()
	}
	w := &holding{jobs: make([]*job, 0, len(l.order)), candidates: make([]pool.Candidate, 0, len(l.order)), which: make([]bool, 0, len(l.order))}
	w.jobRound = jobRound{l: l, visit: w.add, cost: oneEntry}
	w.round.Request()
	l.works.holding = w
	l.works.Add(w)
	if !l.hasManyJobs() {
		l.charge(l.works.Finish(w))
	}
}

// add adds a job.
func (w *holding) add(j *job) {
	w.jobs = append(w.jobs, j)
	c, candidate := pool.Candidate{}, false
	if x := &w.l.sharing.limits; x.running {
		runs, s := j.runs(), j.facts.Submission()
		if candidate = runs || j.runnable() && !s.Suspended(); candidate {
			if j.limitsBy != x.holder {
				j.limitsBy, j.limits = x.holder, x.holder.Limits(s.Owner(), poolName(s))
			}
			c = pool.Candidate{Limits: j.limits, Runs: runs, Priority: s.Priority()}
		}
	}
	w.candidates, w.which = append(w.candidates, c), append(w.which, candidate)
}

// runs reports whether the job has slots.
func (j *job) runs() bool { return j.assign.UsedSlots(mapPhase)+j.assign.UsedSlots(reducePhase) > 0 }

// Advance implements pieces.Work.
func (w *holding) Advance(budget int) (spent int, done bool) {
	l := w.l
	if l.works.holding != w {
		return 0, true // the table has changed
	}
	if w.why == nil {
		if spent, done = w.jobRound.Advance(budget); !done {
			return spent, false
		}
		w.decide()
		spent += 1 + len(w.jobs)/stageParts
	}
	for spent < budget {
		if w.next == len(w.jobs) {
			if w.releases {
				l.endHolding()
				return spent, true
			}
			w.next, w.releases = 0, true
			continue
		}
		spent++
		if !w.apply() {
			l.holdJobs()
			return spent, true
		}
	}
	return spent, false
}

// decide decides about all jobs.
func (w *holding) decide() {
	x := &w.l.sharing.limits
	w.why = slices.Clone(x.holder.Hold(w.candidates))
	if w.why == nil {
		w.why = []string{}
	}
	for i, candidate := range w.which {
		if !candidate && x.running {
			w.why[i] = notChecked
		}
	}
}

// apply holds the next job, or lets it begin. It reports whether the decision still holds.
func (w *holding) apply() bool {
	j, why := w.jobs[w.next], w.why[w.next]
	held, runs := why != "", w.candidates[w.next].Runs
	w.next++
	switch {
	case held == w.releases || w.l.jobs[j.facts.N()] != j:
	case held && !runs && j.runs():
		return false
	default:
		w.l.setHeld(j, why)
	}
	return true
}

// endHolding lets the plans that are due begin.
func (l *leader) endHolding() {
	l.works.holding, l.works.stepAgain = nil, true
	for i := range l.phases {
		l.sharing.limits.held[i] = l.isDue(&l.phases[i])
	}
}

func (l *leader) setHeld(j *job, why string) {
	if j.heldBy != why {
		j.heldBy = why
		l.updateLines(j)
	}
}

// placeFreed plans again after a job has left its place to others.
func (l *leader) placeFreed() {
	if l.sharing.limits.running {
		for i := range l.phases {
			l.phases[i].planNow(l.now)
		}
	}
}
