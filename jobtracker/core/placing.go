package core

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// placeHomes assigns homes to homeless partitions. It skips classical jobs (see package settings):
// their partitions get homes together with slots.
func (l *leader) placeHomes(j *job) {
	if j.spec.Classical || j.partitions.homeless.Len() == 0 || l.awaitsRanking(j) {
		return
	}
	if l.works.placed > 0 && l.works.visited >= 2*l.works.budget {
		l.touchLater(j)
		return
	}
	l.works.placed++
	l.charge(l.placingCost())
	load := l.newHomeLoad(j)
	sites := l.homeSites(j, &load)
	for p := range j.partitions.homeless.All() {
		if sites.Len() == 0 {
			if !j.partitions.noHomeFound {
				j.partitions.noHomeFound = true
				l.todo.noHomeFound = append(l.todo.noHomeFound, j)
			}
			return
		}
		i := sites.Best(func(tracker int) bool { return j.avoids(&j.reduces[p], l.fleet.byIndex[tracker]) })
		t := l.fleet.byIndex[sites.Tracker(i)]
		if j.mustAvoid(&j.reduces[p], t) && l.seekAlternative(j, &j.reduces[p]) {
			if tried := l.triedHome(j, &j.reduces[p]); tried != nil { // else it is still excluded
				l.assignHome(j, p, tried)
			}
			continue
		}
		l.roundRobin = t.assign.Index() + 1
		l.assignHome(j, p, t)
		jobLoad, total := load.on(t)
		sites.AddHome(i, jobLoad, total, len(l.fleet.byIndex))
	}
}

// rankingWait is how many plan periods homes wait for a plan that ranks trackers.
const rankingWait = 4

// awaitsRanking reports whether a job's homes wait for the first plan with the job. They wait
// only under a scheduler that ranks trackers, before map output exists, and for a limited time.
func (l *leader) awaitsRanking(j *job) bool {
	if !menu.NeedsOf(l.sharing.Policy).Trackers || j.outputs.chosen > 0 || len(j.maps) == 0 || l.inPlan(j) {
		return false
	}
	if j.partitions.rankingUntil == 0 {
		j.partitions.rankingUntil = l.now + rankingWait*l.c.cfg.PlanPeriod
		l.alarm(j, j.partitions.rankingUntil)
	}
	return l.now < j.partitions.rankingUntil
}

// inPlan reports whether a plan in force includes the job.
func (l *leader) inPlan(j *job) bool {
	for i := range l.phases {
		if _, ok := l.assign.PlanShare(i, &j.assign); ok {
			return true
		}
	}
	return false
}

// assignHome makes a tracker the home of a partition, and tells it.
func (l *leader) assignHome(j *job, p int, t *tracker) {
	j.partitions.homeless.Remove(p)
	j.partitions.generations++
	l.recordHome(j, p, t, wire.Generation{Epoch: l.epoch, N: j.partitions.generations})
	l.send(t, l.setHomeMessage(j, p))
	if j.outputs.chosen > 0 {
		l.queueAllOutputs(j, t.assign.Index())
	}
}

func (l *leader) setHomeMessage(j *job, p int) *wire.SetHome {
	return &wire.SetHome{Epoch: l.epoch, Job: j.id, Partition: p, Generation: j.partitions.homes[p].generation, Maps: len(j.maps), Token: j.spec.token}
}

// homeSites lists the trackers that can be the home of the next partition of a job.
func (l *leader) homeSites(j *job, load *homeLoad) *placement.Sites {
	sites := l.todo.sites[:0]
	n := len(l.fleet.byIndex)
	ranking := l.ranking(j)
	ranks := make(map[*tracker]int, len(ranking))
	for i, name := range ranking {
		ranks[l.fleet.trackers[name]] = i
	}
	for i, t := range l.fleet.byIndex {
		if t == nil || !l.mayGetHomes(j, t) {
			continue
		}
		jobLoad, total := load.on(t)
		rank, ok := ranks[t]
		if !ok {
			rank = len(ranking)
		}
		turn := (i - l.roundRobin%n + n) % n
		if j.isWarm(t) {
			turn = -1
		}
		sites = append(sites, placement.Site{Tracker: i, JobLoad: jobLoad, Rank: rank, Load: total, Turn: turn})
	}
	l.todo.sites = sites
	return placement.NewSites(sites)
}

// ranking lists the trackers on which the plan expects a job's reduces to end soonest, or else
// its maps. The best tracker is first. Most schedulers rank no trackers.
func (l *leader) ranking(j *job) []string {
	for _, i := range []int{reducePhase, mapPhase} {
		p := &l.phases[i]
		if x, ok := l.assign.PlanShare(p.index, &j.assign); ok && len(p.plan.Targets[x.Rank].Trackers) > 0 {
			return p.plan.Targets[x.Rank].Trackers
		}
	}
	return nil
}

func (l *leader) mayGetHomes(j *job, t *tracker) bool {
	return t.usable() && l.canHost(j, t) && j.uses(t)
}

// outranLoad is how many times the load of a tracker counts that was outrun lately.
const outranLoad = 10

// homeLoad computes the load of trackers that get one more partition of a job.
type homeLoad struct {
	l     *leader
	job   *job
	bytes float64 // of the partition
	jobs  float64 // the fewest jobs with homes, per reduce slot, of a tracker that was not outrun lately
}

func (l *leader) newHomeLoad(j *job) homeLoad {
	x := homeLoad{l: l, job: j, bytes: l.partitionBytes(j), jobs: math.Inf(1)}
	for _, t := range l.fleet.byIndex {
		if t != nil && l.mayGetHomes(j, t) && !l.outranLately(t) {
			x.jobs = min(x.jobs, float64(len(t.hosting.homes))/float64(t.slots[reducePhase]))
		}
	}
	return x
}

// on returns the load of each reduce slot of a tracker: ofJob in partitions of the job, total in
// bytes of all jobs. Slow trackers have more, and so have those that were outrun lately. But ofJob
// ignores the latter if all other trackers serve many more jobs: else these trackers would get all
// homes of jobs with few partitions.
func (x *homeLoad) on(t *tracker) (ofJob, total float64) {
	slots := float64(t.slots[reducePhase])
	share, n := x.l.slowness(x.job, t)/slots, 1
	if x.job.partitions.hosts.Has(t.assign.Index()) {
		n += t.hosting.homes[x.job].Len()
	}
	ofJob, total = float64(n)*share, (t.hosting.load+x.bytes)*share
	if x.l.outranLately(t) {
		total *= outranLoad
		if jobs := float64(len(t.hosting.homes)+1) / slots; jobs*outranLoad > x.jobs {
			ofJob *= outranLoad
		}
	}
	return ofJob, total
}

// partitionBytes is the expected size of a partition of a job.
func (l *leader) partitionBytes(j *job) float64 {
	return float64(max(cmp.Or(j.shuffle().Total, j.splits.input), 1)) / float64(len(j.partitions.homes))
}

// learnSlowdown updates the slowdown of a tracker: it compares the time of a reduce with other
// reduces of the job.
func (l *leader) learnSlowdown(j *job, t *tracker, r *wire.Result) {
	t.hosting.slowdown = forecast.UpdateSlowness(t.hosting.slowdown, &j.measures.Phases[reducePhase].All, r.Took)
}

// partitionsToGather counts the partitions of a classical job that wait for a slot.
func (j *job) partitionsToGather() int {
	if !j.spec.Classical || !j.slowstarted() {
		return 0
	}
	return j.partitions.homeless.Len()
}

// slowstarted reports whether enough maps have ended for reduces to start.
func (j *job) slowstarted() bool {
	return float64(j.outputs.chosen) >= j.spec.Slowstart*float64(len(j.maps))
}

// nextToGather returns the lowest waiting partition that tracker t may gather, or -1.
func (l *leader) nextToGather(j *job, t *tracker) int {
	if j.partitionsToGather() == 0 || !t.canBeHome() && j.faults.FailuresOfKind(wire.Reduce) == 0 {
		return -1 // usually none is tried, and the job may have many partitions
	}
	for p := range j.partitions.homeless.All() {
		if !j.mustAvoid(&j.reduces[p], t) && (t.canBeHome() || l.triedHome(j, &j.reduces[p]) == t) {
			return p
		}
	}
	return -1
}

// hasFasterSlot reports whether a partition can be gathered in a free slot of a tracker that was not
// outrun lately.
func (l *leader) hasFasterSlot(j *job, p int) bool {
	for i := range j.assign.FreeFor(reducePhase).All() {
		t := l.fleet.byIndex[i]
		if t.canBeHome() && !t.assign.Held() && !l.outranLately(t) && !j.mustAvoid(&j.reduces[p], t) {
			return true
		}
	}
	return false
}

// gatherInSlot makes a tracker the home of a classical job's partition and reserves a slot.
func (l *leader) gatherInSlot(j *job, p int, t *tracker) {
	l.assignHome(j, p, t)
	l.reserveSlot(j, p)
}

// reserveSlot reserves a reduce slot for a partition while its home, which is new, gathers it.
func (l *leader) reserveSlot(j *job, p int) {
	h := &j.partitions.homes[p]
	h.reserved = true
	j.partitions.reservedSlots++
	j.tally.slots.Reserved(l.wallAt(h.since))
	l.assign.HoldSlot(&j.assign, &h.tracker.assign, reducePhase)
	l.c.noteChange(j.id)
}

// releaseSlot ends the reservation for a partition.
func (l *leader) releaseSlot(j *job, p int) {
	h := &j.partitions.homes[p]
	if !h.reserved {
		return
	}
	h.reserved = false
	j.partitions.reservedSlots--
	j.tally.slots.Released(l.wallAt(h.since), l.wall())
	l.assign.ReleaseSlot(&j.assign, &h.tracker.assign, reducePhase)
	l.c.noteChange(j.id)
	l.phases[reducePhase].planSoon(l.now)
	l.updateLines(j)
}

// launchGathered launches reduces in slots that are reserved for them.
func (l *leader) launchGathered() {
	l.todo.gathered = slices.DeleteFunc(l.todo.gathered, func(x partition) bool {
		h := &x.job.partitions.homes[x.p]
		switch {
		case l.jobs[x.job.facts.N()] != x.job || !h.reserved || !l.canReduce(x.job, x.p):
			h.queued = false
			return true
		case !x.job.runnable() || !h.tracker.takesWork() || h.tracker.assign.Held():
			return false
		}
		h.queued = false
		l.dropSurplus(h.tracker)
		switch {
		case !h.reserved:
		case !h.tracker.assign.HasRoom(&x.job.assign, reducePhase):
			l.dropReservation(x.job, x.p) // only the slot was reserved: no process runs while a home gathers
		default:
			l.launch(x.job, &x.job.reduces[x.p], h.tracker, wire.AttemptID{})
		}
		return true
	})
}

// dropSurplus drops reservations that exceed a tracker's slots. An earlier leader may have
// assigned the slots to other tasks, or the tracker had more slots.
func (l *leader) dropSurplus(t *tracker) {
	for k := len(l.order) - 1; k >= 0 && t.assign.Free(reducePhase) < 0; k-- {
		j := l.order[k]
		if homes := t.hosting.homes[j]; homes != nil && j.partitions.reservedSlots > 0 {
			for _, p := range slices.Backward(slices.Collect(homes.All())) {
				if t.assign.Free(reducePhase) < 0 {
					l.dropReservation(j, p)
				}
			}
		}
	}
}

// dropReservations drops all reservations of a suspended job.
func (l *leader) dropReservations(j *job) {
	for p := 0; p < len(j.partitions.homes) && j.partitions.reservedSlots > 0; p++ {
		l.dropReservation(j, p)
	}
}

// dropReservation frees the slot of a partition that its home gathers. The reduce then waits for
// a slot, as in jobs that are not classical.
func (l *leader) dropReservation(j *job, p int) {
	if j.partitions.homes[p].reserved {
		l.releaseSlot(j, p)
		l.updateReduce(j, p)
	}
}

// partition names a partition of a job.
type partition struct {
	job *job
	p   int
}

// releaseHome releases the slot and the load of a home on its tracker.
func (l *leader) releaseHome(j *job, p int) {
	h := &j.partitions.homes[p]
	l.releaseSlot(j, p)
	l.moveEnded(h)
	h.tracker.hosting.load = max(0, h.tracker.hosting.load-h.bytes)
}
