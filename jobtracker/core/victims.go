package core

import (
	"slices"
	"strings"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/scheduler/preempt"
)

// victimSearch finds attempts of a phase to kill for pools that starve. It is a stage of a survey: first it visits
// all jobs, in pieces, and lists their attempts. Then it chooses, in one piece. What may have changed since the
// visits is looked up again there.
type victimSearch struct {
	jobRound
	phase     *phase
	table     int // number of the pool table
	standings []pool.Standing
	targets   []int                  // by pool
	index     map[string]int         // of each pool in standings
	waiting   []map[assign.Room]*job // by pool: the first job of those with tasks that wait, by what they request
	ages      runningTasks
	attempts  []preempt.Attempt // running ones; their Pool is -1 for jobs of other pools
	running   []*attempt        // of attempts; one that has ended may have another id
}

func (l *leader) newVictimSearch(p *phase, standings []pool.Standing, targets []int) *victimSearch {
	v := &victimSearch{phase: p, standings: standings, targets: targets, index: make(map[string]int, len(standings)), ages: l.newRunningTasks(p.index, l.now)}
	v.table, _ = l.facts.Pools()
	for i := range standings {
		v.index[standings[i].Pool.Name] = i
		v.waiting = append(v.waiting, make(map[assign.Room]*job))
	}
	v.jobRound = jobRound{l: l, visit: v.add, cost: v.costOf}
	v.round.Request()
	return v
}

func (v *victimSearch) costOf(j *job) int {
	return 1 + j.assign.UsedSlots(v.phase.index)/stageParts
}

// Advance implements pieces.Work.
func (v *victimSearch) Advance(budget int) (spent int, done bool) {
	if v.round.Visits(v.round.Next()) {
		if spent, done = v.jobRound.Advance(budget); !done {
			return spent, false
		}
	}
	if cost := 1 + (len(v.l.fleet.byIndex)+len(v.attempts))/stageParts; spent > 0 && spent+cost > budget {
		return spent, false
	}
	if n, _ := v.l.facts.Pools(); n != v.table {
		return spent + 1, true // the next look is by the new table
	}
	return spent + v.choose(), true
}

// add lists the running attempts of a job. Unlike the snapshot it also visits jobs that get no slots, such as
// suspended ones: their attempts stay, but slots are free when those that are being killed have ended.
func (v *victimSearch) add(j *job) {
	phase := v.phase.index
	at, known := v.index[poolName(j.facts.Submission())]
	request := j.assign.Request(phase)
	if known && v.targets[at] > 0 && j.plannable() && v.l.toLaunch(j, phase) > 0 && v.waiting[at][request] == nil {
		v.waiting[at][request] = j
	}
	if j.assign.UsedSlots(phase) == 0 {
		return
	}
	if !known {
		at = -1
	}
	task := v.l.currentTaskTime(&v.ages, j)
	for a := range j.runningAttempts(phase) {
		v.attempts = append(v.attempts, preempt.Attempt{ID: a.id, Pool: at, Room: preempt.Room(request), Age: v.ages.age(a), Task: task})
		v.running = append(v.running, a)
	}
}

// pools describes the pools for a choice.
func (v *victimSearch) pools() []preempt.Pool {
	pools, uses := make([]preempt.Pool, len(v.standings)), v.l.assign.PoolUses()
	for i := range v.standings {
		s := &v.standings[i]
		pools[i] = preempt.Pool{
			Running: uses[s.Pool.Name].Slots[v.phase.index], Keep: preempt.Keep(s), Least: preempt.Least(s),
			Target: v.targets[i], Spared: s.Pool.Preemption != nil && s.Pool.Preemption.Spared,
		}
		for _, r := range smallestRequests(v.waiting[i]) {
			if !v.waiting[i][r].facts.Ended() {
				pools[i].Requests = append(pools[i].Requests, preempt.Room(r))
			}
		}
	}
	return pools
}

// choose kills attempts, and returns the entries that it visited.
func (v *victimSearch) choose() (spent int) {
	l, pools := v.l, v.pools()
	trackers := make([]preempt.Tracker, len(l.fleet.byIndex))
	for i, t := range l.fleet.byIndex {
		trackers[i] = t.slotsToGive(v.phase.index)
	}
	attempts, running := v.attempts[:0], v.running[:0]
	for i, x := range v.attempts {
		a := v.running[i]
		if a.id != x.ID || !a.job.attempts.has(a) {
			continue // it has ended
		}
		x.Tracker = a.tracker.assign.Index()
		switch t := &trackers[x.Tracker]; {
		case a.killed():
			if a.tracker.freesSlots(v.phase.index) {
				t.Free, t.Left = t.Free+1, t.Left.Plus(x.Room)
			}
			if x.Pool >= 0 {
				pools[x.Pool].Running--
			}
		case x.Pool >= 0 && a.job.plannable() && l.mayTakeBack(a) && a.tracker.givesSlots(v.phase.index):
			attempts, running = append(attempts, x), append(running, a)
		}
	}
	choice := preempt.Choose(pools, trackers, attempts)
	v.carryOut(choice, running)
	return 1 + (len(trackers)+len(v.attempts)+choice.Visited)/stageParts
}

// carryOut kills the chosen attempts.
func (v *victimSearch) carryOut(choice *preempt.Choice, running []*attempt) {
	l := v.l
	var takers []string
	killed := 0
	for _, set := range choice.Sets {
		name := v.standings[set.Pool].Pool.Name
		for _, i := range set.Attempts {
			l.killAttempt(running[i], "preempted for pool "+name)
		}
		j := v.waiting[set.Pool][assign.Room(set.Request)]
		l.assign.SaveUntil(&j.assign, v.phase.index, &l.fleet.byIndex[set.Tracker].assign, l.now+saveKilled)
		takers, killed = append(takers, name), killed+len(set.Attempts)
	}
	if killed > 0 {
		l.c.counts.Preempted.Add(int64(killed))
		l.log("pools take slots back", "pools", strings.Join(slices.Compact(takers), ", "), "of", v.phase.kind.String(), "attempts", killed)
	}
	for _, i := range choice.Served {
		v.phase.starvation.watch.Restart(v.standings[i].Pool.Name)
	}
}
