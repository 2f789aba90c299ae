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
	if !slices.ContainsFunc(targets, func(slots int) bool { return slots > 0 }) {
		return
	}
	v := l.victims(p.index, standings, targets)
	choice := preempt.Choose(v.pools, v.trackers, v.attempts)
	if len(choice.Sets) == 0 {
		return
	}
	var takers []string
	killed := 0
	for _, set := range choice.Sets {
		name := standings[set.Pool].Pool.Name
		for _, i := range set.Attempts {
			l.killAttempt(v.running[i], "preempted for pool "+name)
		}
		j := v.waiting[set.Pool][assign.Room(set.Request)]
		l.assign.SaveUntil(&j.assign, p.index, &l.fleet.byIndex[set.Tracker].assign, l.now+saveKilled)
		takers, killed = append(takers, name), killed+len(set.Attempts)
	}
	l.c.counts.Preempted.Add(int64(killed))
	l.log("pools take slots back", "pools", strings.Join(slices.Compact(takers), ", "), "of", p.kind.String(), "attempts", killed)
	for _, i := range choice.Served {
		w.watch.Restart(standings[i].Pool.Name)
	}
}

// victims is the input of preempt.Choose.
type victims struct {
	pools    []preempt.Pool
	trackers []preempt.Tracker // by index
	attempts []preempt.Attempt
	running  []*attempt             // of attempts
	waiting  []map[assign.Room]*job // by pool: the first job of those with tasks that wait, by what they request
}

// victims lists the attempts of a phase that may be killed, and the slots that are free. Unlike the snapshot
// it counts the slots of all jobs of the pools, such as suspended ones: their attempts stay.
func (l *leader) victims(phase int, standings []pool.Standing, targets []int) (v victims) {
	index := make(map[string]int, len(standings))
	for i := range standings {
		s := &standings[i]
		index[s.Pool.Name] = i
		v.pools = append(v.pools, preempt.Pool{Keep: preempt.Keep(s), Least: preempt.Least(s), Target: targets[i], Spared: s.Pool.Preemption != nil && s.Pool.Preemption.Spared})
		v.waiting = append(v.waiting, make(map[assign.Room]*job))
	}
	for _, t := range l.fleet.byIndex {
		v.trackers = append(v.trackers, t.slotsToGive(phase))
	}
	ages := l.newRunningTasks(phase, l.now)
	for _, j := range l.order {
		at, known := index[poolName(j.facts.Submission())]
		if known && targets[at] > 0 && j.plannable() && l.toLaunch(j, phase) > 0 && v.waiting[at][j.assign.Request(phase)] == nil {
			v.waiting[at][j.assign.Request(phase)] = j
		}
		if j.assign.UsedSlots(phase) > 0 {
			if !known {
				at = -1
			}
			l.addVictims(&v, phase, j, at, &ages)
		}
	}
	for i := range v.pools {
		for _, r := range smallestRequests(v.waiting[i]) {
			v.pools[i].Requests = append(v.pools[i].Requests, preempt.Room(r))
		}
	}
	return v
}

// addVictims adds the attempts of a job in the pool at an index; -1: in none.
func (l *leader) addVictims(v *victims, phase int, j *job, at int, ages *runningTasks) {
	task, room := l.currentTaskTime(ages, j), preempt.Room(j.assign.Request(phase))
	if at >= 0 {
		v.pools[at].Running += j.assign.UsedSlots(phase)
	}
	for a := range j.runningAttempts(phase) {
		t := &v.trackers[a.tracker.assign.Index()]
		switch {
		case a.killed():
			if a.tracker.givesSlots(phase) {
				t.Free, t.Left = t.Free+1, t.Left.Plus(room)
			}
			if at >= 0 {
				v.pools[at].Running--
			}
		case at >= 0 && j.plannable() && l.mayTakeBack(a) && a.tracker.givesSlots(phase):
			v.attempts = append(v.attempts, preempt.Attempt{ID: a.id, Pool: at, Tracker: a.tracker.assign.Index(), Room: room, Age: ages.age(a), Task: task})
			v.running = append(v.running, a)
		}
	}
}

// givesSlots reports whether another task may begin on a tracker when attempts of a phase have ended there.
func (t *tracker) givesSlots(phase int) bool {
	_, savedPhase, saved := t.assign.Saved()
	return t.takesWork() && !t.assign.Held() && t.assign.Free(phase) >= 0 && !(saved && savedPhase != phase)
}

// slotsToGive returns the free slots of a tracker, which may be nil, and the room that it has left.
func (t *tracker) slotsToGive(phase int) preempt.Tracker {
	if t == nil || !t.givesSlots(phase) {
		return preempt.Tracker{}
	}
	x := preempt.Tracker{Free: t.assign.Free(phase), Left: preempt.Unlimited}
	offer, used := t.assign.Offer(), t.assign.Used()
	if offer.Memory > 0 {
		x.Left.Memory = offer.Memory - used.Memory
	}
	if offer.Cores > 0 {
		x.Left.Cores = offer.Cores - used.Cores
	}
	if request, _, saved := t.assign.Saved(); saved {
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
