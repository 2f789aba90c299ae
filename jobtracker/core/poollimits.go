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
}

// notChecked is why a new job is held until the next plan.
const notChecked = "the next plan checks the limits of its user and of the pools around its own"

// partKey is the key of a pool's part of the slots of a phase.
func partKey(name string, phase int) string { return name + "/" + phaseNames[phase] }

// setPools passes the limits of the pool table to the assigner.
func (l *leader) setPools() {
	_, table := l.facts.Pools()
	l.sharing.limits = poolLimits{running: table.LimitsRunning(), slots: table.LimitsInner(), parts: make(map[string]int), parted: make(map[string]bool)}
	for phase := range l.phases {
		l.divideSlots(phase)
	}
	l.assign.SetPools(l.limitedPools())
	l.limitAhead()
	l.charge(len(l.order) / 8)
	for _, j := range l.order {
		l.setHeld(j, "")
	}
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

// keepLimits divides the limits that concern several pools, if a plan is due.
func (l *leader) keepLimits() {
	if !l.sharing.limits.running && !l.sharing.limits.slots {
		return
	}
	held, changed := false, false
	for i := range l.phases {
		if p := &l.phases[i]; p.planning || p.surveying != nil || l.now < p.nextPlanAt {
			continue
		}
		if !held {
			held = true
			l.holdJobs()
		}
		changed = l.divideSlots(i) || changed
	}
	if changed {
		l.assign.SetPools(l.limitedPools())
	}
}

// divideSlots computes the pools' parts of the slots of a phase. It reports whether any has changed.
func (l *leader) divideSlots(phase int) (changed bool) {
	if !l.sharing.limits.slots {
		return false
	}
	use := make(map[string]pool.Use)
	for _, j := range l.order {
		name := poolName(j.facts.Submission())
		u := use[name]
		u.Running += j.assign.UsedSlots(phase)
		u.Demand += j.assign.UsedSlots(phase)
		if j.plannable() {
			u.Demand += l.toLaunch(j, phase)
		}
		use[name] = u
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

// holdJobs decides which jobs may begin to run by the limits of users and pools.
func (l *leader) holdJobs() {
	if !l.sharing.limits.running {
		return
	}
	var jobs []*job
	var candidates []pool.Candidate
	for _, j := range l.order {
		s := j.facts.Submission()
		if runs := j.assign.UsedSlots(mapPhase)+j.assign.UsedSlots(reducePhase) > 0; runs || j.runnable() && !s.Suspended() {
			jobs = append(jobs, j)
			candidates = append(candidates, pool.Candidate{Pool: poolName(s), User: s.Owner(), Runs: runs, Priority: s.Priority()})
			continue
		}
		l.setHeld(j, notChecked)
	}
	_, table := l.facts.Pools()
	for i, why := range table.Hold(candidates) {
		l.setHeld(jobs[i], why)
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
