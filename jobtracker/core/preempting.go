package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/scheduler/preempt"
	"github.com/quernmr/quern/wire"
)

// The leader takes running attempts back in two cases: a pool starves (package preempt decides),
// or the owner of a suspended job asks for it. The attempts end as killed, their tasks wait for
// slots again, and no failure counts.
//
// Pools are looked at when a plan is requested: its snapshot has their slots, and a look costs as much
// as the snapshot. Only if a pool starves for its timeout, the leader visits all running attempts.

// preemptPeriod is the time between two looks at the pools of a phase.
const preemptPeriod = time.Second

// starvation is a phase's watch over pools that starve.
type starvation struct {
	watch    preempt.Watch
	nextLook time.Duration
}

// preempts reports whether pools may take slots from others at all.
func (l *leader) preempts() bool {
	_, table := l.facts.Pools()
	return l.c.cfg.Preemption && table.Preempts()
}

// preempt kills attempts for the pools that starve by a snapshot of a phase.
func (l *leader) preempt(p *phase, s *scheduler.Snapshot) {
	w := &p.starvation
	switch {
	case l.now < w.nextLook:
		return
	case !l.preempts() || len(s.Jobs) == 0:
		w.watch = preempt.Watch{}
		return
	}
	w.nextLook = l.now + preemptPeriod
	_, table := l.facts.Pools()
	standings := table.Standings(s, l.poolOf)
	targets := w.watch.Look(standings, menu.NeedsOf(l.sharing.Policy).Shares, l.now)
	var starving []string
	for i, target := range targets {
		if target > 0 {
			starving = append(starving, standings[i].Pool.Name)
		}
	}
	if len(starving) == 0 {
		return
	}
	v := l.victims(p.index, standings, targets)
	chosen := preempt.Choose(v.pools, v.attempts, v.free)
	takers := v.takers(standings, len(chosen))
	for k, i := range chosen {
		l.killAttempt(v.running[i], "preempted for pool "+takers[k])
	}
	if len(chosen) > 0 {
		l.log("pools take slots back", "pools", strings.Join(slices.Compact(takers), ", "), "of", p.kind.String(), "attempts", len(chosen))
		for _, name := range starving {
			w.watch.Restart(name)
		}
	}
}

// victims is the input of preempt.Choose.
type victims struct {
	pools    []preempt.Pool
	attempts []preempt.Attempt
	running  []*attempt // of attempts
	free     int
}

// takers names the pools for which a number of attempts is killed: each as often as it misses slots.
func (v *victims) takers(standings []pool.Standing, attempts int) (names []string) {
	for i := range v.pools {
		for n := v.pools[i].Target - v.pools[i].Running; n > 0 && len(names) < attempts; n-- {
			names = append(names, standings[i].Pool.Name)
		}
	}
	return names
}

// wanted returns what the tasks that wait in starving pools request, by the pools' indexes.
func (l *leader) wanted(phase int, index map[string]int, targets []int) map[assign.Room]bool {
	requests := make(map[assign.Room]bool)
	for _, j := range l.order {
		if at, known := index[poolName(j.facts.Submission())]; known && targets[at] > 0 && j.plannable() && l.toLaunch(j, phase) > 0 {
			requests[j.assign.Request(phase)] = true
		}
	}
	return requests
}

// freeForAny counts the free slots of a tracker with room for the smallest request that fits most often.
// Others need not count: a tracker that is saved for one has no room for it yet.
func (t *tracker) freeForAny(phase int, smallest []assign.Room) (n int) {
	for _, request := range smallest {
		n = max(n, t.assign.FreeWith(phase, request))
	}
	return n
}

// freesSlot reports whether a slot of a tracker helps a request, when an attempt there has ended.
func (t *tracker) freesSlot(phase int, requests []assign.Room) bool {
	return t.takesWork() && t.assign.Free(phase) >= 0 && slices.ContainsFunc(requests, t.assign.Offer().Holds)
}

// victims lists the attempts of a phase that may be killed, on trackers where their slots help. Unlike the
// snapshot it counts the slots of all jobs of the pools, such as suspended ones: their attempts stay.
func (l *leader) victims(phase int, standings []pool.Standing, targets []int) (v victims) {
	index := make(map[string]int, len(standings))
	for i := range standings {
		s := &standings[i]
		index[s.Pool.Name] = i
		v.pools = append(v.pools, preempt.Pool{Keep: preempt.Keep(s), Target: targets[i], Spared: s.Pool.Preemption != nil && s.Pool.Preemption.Spared})
	}
	requests := smallestRequests(l.wanted(phase, index, targets))
	for i := range l.assign.FreeTrackers(phase).All() {
		v.free += l.fleet.byIndex[i].freeForAny(phase, requests)
	}
	ages := l.newRunningTasks(phase, l.now)
	for _, j := range l.order {
		at, known := index[poolName(j.facts.Submission())]
		if j.assign.UsedSlots(phase) == 0 {
			continue
		}
		task := l.currentTaskTime(&ages, j)
		if known {
			v.pools[at].Running += j.assign.UsedSlots(phase)
		}
		for a := range j.runningAttempts(phase) {
			switch {
			case a.killed():
				if a.tracker.freesSlot(phase, requests) {
					v.free++
				}
				if known {
					v.pools[at].Running--
				}
			case known && j.plannable() && l.mayTakeBack(a) && a.tracker.freesSlot(phase, requests):
				v.attempts = append(v.attempts, preempt.Attempt{ID: a.id, Pool: at, Age: ages.age(a), Task: task})
				v.running = append(v.running, a)
			}
		}
	}
	return v
}

// currentTaskTime estimates the tasks of a job's phase as a forecast does; 0: unknown.
func (l *leader) currentTaskTime(v *runningTasks, j *job) time.Duration {
	p := v.forecastPhase(j)
	return p.Correct(p.Task(l.overheads.WarmUp)).Time
}

// mayTakeBack reports whether an attempt may be killed for its slot: it has not finished its work,
// and nothing of it may be committed.
func (l *leader) mayTakeBack(a *attempt) bool {
	return !a.killed() && a.state == wire.AttemptRunning && !a.job.taskDone(a.id.Task) &&
		!(a.id.Task.Kind == a.job.facts.Kind() && a.job.facts.HasGrant(a.id.Task.N, a.id.N))
}

// takeBack kills the running attempts of a suspended job, except those that near their end.
func (l *leader) takeBack(j *job) {
	for phase := range l.phases {
		ages := l.newRunningTasks(phase, l.now)
		task := l.currentTaskTime(&ages, j)
		for _, a := range sortedAttempts(j.runningAttempts(phase)) {
			x := preempt.Attempt{ID: a.id, Age: ages.age(a), Task: task}
			if l.mayTakeBack(a) && !x.NearsEnd() {
				l.killAttempt(a, fmt.Sprintf("taken back: %v is suspended", j.id))
			}
		}
	}
}

// asksBack reports whether a change that was applied is a client's request to suspend a submission
// and take its slots back.
func (l *leader) asksBack(x *facts.SettingsChanged) bool {
	list := l.requests[changeKey(x.Key)]
	if len(list) == 0 || !list[0].matches(x) {
		return false
	}
	r, ok := list[0].request.(Change)
	return ok && r.TakeBack
}
