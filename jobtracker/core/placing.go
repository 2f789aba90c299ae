package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// placeHomes finds homes for partitions without one. Classical jobs are skipped: their
// partitions get homes with their slots.
func (l *Live) placeHomes(j *job) {
	if j.spec.Classical || j.housing.homeless.Len() == 0 || l.awaitsRanking(j) {
		return
	}
	w := l.partitionBytes(j)
	sites := l.homeSites(j, w)
	for p := range j.housing.homeless.All() {
		if sites.Len() == 0 {
			if !j.housing.noHomeFound {
				j.housing.noHomeFound = true
				l.todo.noHomeFound = append(l.todo.noHomeFound, j)
			}
			return
		}
		i := sites.Best(func(tracker int) bool { return j.avoids(&j.reduces[p], l.fleet.byIndex[tracker]) })
		t := l.fleet.byIndex[sites.Tracker(i)]
		l.roundRobin = t.assign.Index() + 1
		l.assignHome(j, p, t)
		own, load := l.loads(j, t, w)
		sites.AddHome(i, own, load, len(l.fleet.byIndex))
	}
}

// rankingWait is how many allocation periods homes wait for a plan that ranks trackers.
const rankingWait = 4

// awaitsRanking says whether a job's homes wait for the first plan with the job: only under a
// policy that ranks trackers, while no map output exists, and for a limited time.
func (l *Live) awaitsRanking(j *job) bool {
	if !menu.NeedsOf(l.sharing.Policy).Trackers || j.outputs.chosen > 0 || len(j.maps) == 0 || l.inPlan(j) {
		return false
	}
	if j.housing.rankingDue == 0 {
		j.housing.rankingDue = l.now + rankingWait*l.c.cfg.Period
		l.alarm(j, j.housing.rankingDue)
	}
	return l.now < j.housing.rankingDue
}

// inPlan says whether a plan in force has a target for the job.
func (l *Live) inPlan(j *job) bool {
	for i := range l.phases {
		if _, ok := l.assign.PlanShare(i, &j.assign); ok {
			return true
		}
	}
	return false
}

// assignHome makes a tracker the home of a partition, and tells it.
func (l *Live) assignHome(j *job, p int, t *tracker) {
	j.housing.homeless.Remove(p)
	j.housing.gen++
	l.recordHome(j, p, t, wire.Generation{Epoch: l.epoch, N: j.housing.gen})
	l.send(t, l.setHome(j, p))
	if j.outputs.chosen > 0 {
		l.queueAllOutputs(j, t.assign.Index())
	}
}

func (l *Live) setHome(j *job, p int) *wire.SetHome {
	return &wire.SetHome{Epoch: l.epoch, Job: j.id, Partition: p, Generation: j.housing.homes[p].gen, Maps: len(j.maps), Token: j.spec.token}
}

// homeSites lists the possible homes for the next partition of a job.
func (l *Live) homeSites(j *job, w float64) *placement.Sites {
	var sites []placement.Site
	n := len(l.fleet.byIndex)
	best := l.ranking(j)
	ranks := make(map[*tracker]int, len(best))
	for i, name := range best {
		ranks[l.fleet.trackers[name]] = i
	}
	for i, t := range l.fleet.byIndex {
		if t == nil || !t.usable() || !t.canBeHome() {
			continue
		}
		own, load := l.loads(j, t, w)
		rank, ok := ranks[t]
		if !ok {
			rank = len(best)
		}
		sites = append(sites, placement.Site{Tracker: i, JobLoad: own, Rank: rank, Load: load, Turn: (i - l.roundRobin%n + n) % n})
	}
	return placement.NewSites(sites)
}

// ranking lists the trackers where the plan expects a job's tasks to end soonest, best first:
// for its reduces, else for its maps. It is empty under most policies.
func (l *Live) ranking(j *job) []string {
	for _, i := range []int{reducePhase, mapPhase} {
		p := &l.phases[i]
		if x, ok := l.assign.PlanShare(p.index, &j.assign); ok && len(p.plan.Targets[x.Rank].Trackers) > 0 {
			return p.plan.Targets[x.Rank].Trackers
		}
	}
	return nil
}

// loads is the load of a tracker's reduce slots with another w bytes of a job: own in
// partitions of the job, all in bytes of all jobs.
func (l *Live) loads(j *job, t *tracker, w float64) (own, all float64) {
	share, n := l.slowness(j, t)/float64(t.slots[reducePhase]), 1
	if homes := t.hosting.homes[j]; homes != nil {
		n += homes.Len()
	}
	return float64(n) * share, (t.hosting.load + w) * share
}

// partitionBytes is the expected size of a partition of a job.
func (l *Live) partitionBytes(j *job) float64 {
	return float64(max(cmp.Or(j.shuffle().Total, j.splits.input), 1)) / float64(len(j.housing.homes))
}

// learnSpeed compares a reduce's time with other reduces of its job, to learn the tracker's
// slowdown.
func (l *Live) learnSpeed(j *job, t *tracker, r *wire.Result) {
	t.hosting.slowdown = forecast.UpdateSlowness(t.hosting.slowdown, &j.measures.Phases[reducePhase].All, r.Took)
}

// partitionsToGather is how many partitions of a classical job wait for a slot.
func (j *job) partitionsToGather() int {
	if !j.spec.Classical || !j.slowstarted() {
		return 0
	}
	return j.housing.homeless.Len()
}

// slowstarted says whether enough maps have ended for reduces to start.
func (j *job) slowstarted() bool {
	return float64(j.mapsDone()) >= j.spec.Slowstart*float64(len(j.maps))
}

// nextToGather is the lowest waiting partition that tracker t may gather, or -1.
func (j *job) nextToGather(t *tracker) int {
	if j.partitionsToGather() == 0 || !t.canBeHome() {
		return -1
	}
	for p := range j.housing.homeless.All() {
		if !j.mustAvoid(&j.reduces[p], t) {
			return p
		}
	}
	return -1
}

// gatherInSlot makes a tracker the home of a classical job's partition and reserves a slot.
func (l *Live) gatherInSlot(j *job, p int, t *tracker) {
	l.assignHome(j, p, t)
	l.reserveSlot(j, p)
}

// reserveSlot reserves a reduce slot for a partition while its home gathers it.
func (l *Live) reserveSlot(j *job, p int) {
	h := &j.housing.homes[p]
	h.reserved = true
	j.housing.reservedSlots++
	l.assign.Occupy(&j.assign, &h.tracker.assign, reducePhase)
}

// releaseSlot ends the reservation.
func (l *Live) releaseSlot(j *job, p int) {
	h := &j.housing.homes[p]
	if !h.reserved {
		return
	}
	h.reserved = false
	j.housing.reservedSlots--
	l.assign.Vacate(&j.assign, &h.tracker.assign, reducePhase)
	l.phases[reducePhase].planSoon(l.now)
	l.updateLines(j)
}

// launchGathered launches reduces in the slots that are reserved for them.
func (l *Live) launchGathered() {
	l.todo.gathered = slices.DeleteFunc(l.todo.gathered, func(x partition) bool {
		h := &x.job.housing.homes[x.p]
		switch {
		case l.jobs[x.job.facts.N()] != x.job || !h.reserved || !l.canReduce(x.job, x.p):
			h.queued = false
			return true
		case !x.job.runnable() || !h.tracker.takesWork():
			return false
		}
		h.queued = false
		l.dropSurplus(h.tracker)
		if h.reserved {
			l.launch(x.job, &x.job.reduces[x.p], h.tracker, wire.AttemptID{})
		}
		return true
	})
}

// dropSurplus drops reservations of a tracker that exceed its slots. An earlier leader may have
// assigned the slots to other tasks, or the tracker had more.
func (l *Live) dropSurplus(t *tracker) {
	for k := len(l.order) - 1; k >= 0 && t.assign.Free(reducePhase) < 0; k-- {
		j := l.order[k]
		if homes := t.hosting.homes[j]; homes != nil && j.housing.reservedSlots > 0 {
			for _, p := range slices.Backward(slices.Collect(homes.All())) {
				if t.assign.Free(reducePhase) < 0 {
					l.dropReservation(j, p)
				}
			}
		}
	}
}

// dropReservations drops all reservations of a suspended job.
func (l *Live) dropReservations(j *job) {
	for p := 0; p < len(j.housing.homes) && j.housing.reservedSlots > 0; p++ {
		l.dropReservation(j, p)
	}
}

// dropReservation lets a home gather a partition without a slot. The reduce then waits for a
// slot like those of other jobs.
func (l *Live) dropReservation(j *job, p int) {
	if j.housing.homes[p].reserved {
		l.releaseSlot(j, p)
		l.updateReduce(j, p)
	}
}

// partition names a partition of a job.
type partition struct {
	job *job
	p   int
}

// dropHome releases what a home has of its tracker.
func (l *Live) dropHome(j *job, p int) {
	h := &j.housing.homes[p]
	l.releaseSlot(j, p)
	l.moveEnded(h)
	h.tracker.hosting.load = max(0, h.tracker.hosting.load-h.bytes)
}
