package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/preempt"
	"github.com/quernmr/quern/wire"
)

// The leader takes running attempts back in two cases: a pool starves (package preempt decides),
// or the owner of a suspended job asks for it. The attempts end as killed, their tasks wait for
// slots again, and no failure counts.
//
// Pools are looked at when a plan is requested: its snapshot has their slots, and a look costs as much
// as the snapshot. Only if a pool starves for its timeout, the leader visits all running attempts, see victims.go.

// preemptPeriod is the time between two looks at the pools of a phase. A tracker where attempts are killed
// is saved for the task that needs their room, for saveKilled at most: by then they have ended.
const (
	preemptPeriod = time.Second
	saveKilled    = 10 * time.Second
)

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

// preempt looks at the pools of a phase in a snapshot. It returns a search for the attempts to kill if some have
// starved for their timeouts, else nil.
func (l *leader) preempt(p *phase, s *scheduler.Snapshot) *victimSearch {
	w := &p.starvation
	switch {
	case l.now < w.nextLook:
		return nil
	case !l.preempts() || len(s.Jobs) == 0:
		w.watch = preempt.Watch{}
		return nil
	}
	w.nextLook = l.now + preemptPeriod
	_, table := l.facts.Pools()
	standings := table.Standings(s, l.poolOf)
	targets := w.watch.Look(standings, menu.NeedsOf(l.sharing.Policy).Shares, l.now)
	if !slices.ContainsFunc(targets, func(slots int) bool { return slots > 0 }) {
		return nil
	}
	return l.newVictimSearch(p, standings, targets)
}

// freesSlots reports whether slots of a phase are free on a tracker when attempts have ended there.
func (t *tracker) freesSlots(phase int) bool {
	return t.takesWork() && !t.assign.Held() && t.assign.Free(phase) >= 0
}

// givesSlots reports whether tasks of a phase may begin in the free slots of a tracker. If it is saved for the
// other phase, they have to wait, but those of attempts that are being killed are not killed for again.
func (t *tracker) givesSlots(phase int) bool {
	_, savedPhase, saved := t.assign.Saved()
	return t.freesSlots(phase) && !(saved && savedPhase != phase)
}

// slotsToGive returns the free slots of a tracker, which may be nil, and the room that it has left.
func (t *tracker) slotsToGive(phase int) preempt.Tracker {
	if t == nil || !t.freesSlots(phase) {
		return preempt.Tracker{}
	}
	x := preempt.Tracker{Left: preempt.Unlimited}
	if t.givesSlots(phase) {
		x.Free = t.assign.Free(phase)
	}
	offer, used := t.assign.Offer(), t.assign.Used()
	if offer.Memory > 0 {
		x.Left.Memory = offer.Memory - used.Memory
	}
	if offer.Cores > 0 {
		x.Left.Cores = offer.Cores - used.Cores
	}
	if request, savedPhase, saved := t.assign.Saved(); saved && savedPhase == phase {
		only := preempt.Room(request)
		x.Saved = &only
	}
	return x
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
