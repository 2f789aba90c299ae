package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// placeHomes finds homes for partitions that have none, but for classical ones, which
// get them with their slots.
func (l *Live) placeHomes(j *job) {
	if j.spec.Classical || j.housing.homeless.Len() == 0 || l.awaitsRanking(j) {
		return
	}
	w := l.partitionBytes(j)
	sites := l.sites(j, w)
	for p := range j.housing.homeless.All() {
		if sites.Len() == 0 {
			if !j.housing.unhoused {
				j.housing.unhoused = true
				l.todo.unhoused = append(l.todo.unhoused, j)
			}
			return
		}
		i := sites.Best(func(tracker int) bool { return j.avoids(&j.reduces[p], l.fleet.byIndex[tracker]) })
		t := l.fleet.byIndex[sites.Tracker(i)]
		l.placed = t.assign.Index() + 1
		l.homeAt(j, p, t)
		own, load := l.loads(j, t, w)
		sites.AddHome(i, own, load, len(l.fleet.byIndex))
	}
}

// rankingWait is how long homes wait for a plan that ranks trackers, in allocation periods.
const rankingWait = 4

// awaitsRanking says whether the homes of a job wait for the first plan that names it:
// under a policy that ranks trackers, as long as there is nothing to be gathered, and not
// for ever.
func (l *Live) awaitsRanking(j *job) bool {
	if !menu.NeedsOf(l.sharing.Policy).Trackers || j.outputs.chosen > 0 || len(j.maps) == 0 || l.isNamed(j) {
		return false
	}
	if j.housing.rankedBy == 0 {
		j.housing.rankedBy = l.now + rankingWait*l.c.cfg.Period
		l.alarm(j, j.housing.rankedBy)
	}
	return l.now < j.housing.rankedBy
}

// isNamed says whether a plan in force names a job.
func (l *Live) isNamed(j *job) bool {
	for i := range l.phases {
		if _, ok := l.assign.Given(i, &j.assign); ok {
			return true
		}
	}
	return false
}

// homeAt has a partition gathered on a tracker from now on.
func (l *Live) homeAt(j *job, p int, t *tracker) {
	j.housing.homeless.Remove(p)
	j.housing.gen++
	l.settleHome(j, p, t, wire.Generation{Epoch: l.epoch, N: j.housing.gen})
	l.send(t, l.setHome(j, p))
	if j.outputs.chosen > 0 {
		l.tellAll(j, t.assign.Index())
	}
}

func (l *Live) setHome(j *job, p int) *wire.SetHome {
	return &wire.SetHome{Epoch: l.epoch, Job: j.id, Partition: p, Generation: j.housing.homes[p].gen, Maps: len(j.maps), Token: j.spec.token}
}

// sites is where the next partition of a job may be at home.
func (l *Live) sites(j *job, w float64) *placement.Sites {
	var sites []placement.Site
	n := len(l.fleet.byIndex)
	best := l.ranking(j)
	ranks := make(map[*tracker]int, len(best))
	for i, name := range best {
		ranks[l.fleet.trackers[name]] = i
	}
	for i, t := range l.fleet.byIndex {
		if t == nil || !t.usable() || !t.mayHome() {
			continue
		}
		own, load := l.loads(j, t, w)
		rank, ok := ranks[t]
		if !ok {
			rank = len(best)
		}
		sites = append(sites, placement.Site{Tracker: i, JobLoad: own, Rank: rank, Load: load, Turn: (i - l.placed%n + n) % n})
	}
	return placement.NewSites(sites)
}

// ranking is the trackers where the plans in force have a job's tasks end soonest, the
// best first: its reduces, else its maps. Most policies have no opinion.
func (l *Live) ranking(j *job) []string {
	for _, i := range []int{reducePhase, mapPhase} {
		p := &l.phases[i]
		if x, ok := l.assign.Given(p.index, &j.assign); ok && len(p.plan.Targets[x.Rank].Trackers) > 0 {
			return p.plan.Targets[x.Rank].Trackers
		}
	}
	return nil
}

// loads is how long a tracker's slots have to reduce with another w bytes of a job: of
// it alone, in partitions, and of all jobs, in bytes.
func (l *Live) loads(j *job, t *tracker, w float64) (own, all float64) {
	share, n := l.slowness(j, t)/float64(t.slots[reducePhase]), 1
	if homes := t.hosting.homes[j]; homes != nil {
		n += homes.Len()
	}
	return float64(n) * share, (t.hosting.load + w) * share
}

// partitionBytes is what a partition of a job is taken to have.
func (l *Live) partitionBytes(j *job) float64 {
	return float64(max(cmp.Or(j.shuffle().Whole, j.splits.input), 1)) / float64(len(j.housing.homes))
}

// learnSpeed takes in how a reduce's time on a tracker compares with its job's others.
func (l *Live) learnSpeed(j *job, t *tracker, r *wire.Result) {
	t.hosting.slow = forecast.UpdateSlowness(t.hosting.slow, &j.measures.Phases[reducePhase].All, r.Took)
}

// toGather is how many partitions of a classical job wait for a slot to be gathered in.
func (j *job) toGather() int {
	if !j.spec.Classical || !j.slowstarted() {
		return 0
	}
	return j.housing.homeless.Len()
}

// slowstarted says whether as many maps have ended as reduces are to wait for.
func (j *job) slowstarted() bool {
	return float64(j.mapsDone()) >= j.spec.Slowstart*float64(len(j.maps))
}

// toGatherAt is the lowest of them that may be gathered on a tracker, or -1.
func (j *job) toGatherAt(t *tracker) int {
	if j.toGather() == 0 || !t.mayHome() {
		return -1
	}
	for p := range j.housing.homeless.All() {
		if !j.waitsFor(&j.reduces[p], t) {
			return p
		}
	}
	return -1
}

// gatherAt gives a partition of a classical job a slot, and a home there.
func (l *Live) gatherAt(j *job, p int, t *tracker) {
	l.homeAt(j, p, t)
	l.holdSlot(j, p)
}

// holdSlot keeps a reduce slot for a partition that is gathered.
func (l *Live) holdSlot(j *job, p int) {
	h := &j.housing.homes[p]
	h.slot = true
	j.housing.gathering++
	l.assign.Occupy(&j.assign, &h.tracker.assign, reducePhase)
}

// freeSlot lets go of it.
func (l *Live) freeSlot(j *job, p int) {
	h := &j.housing.homes[p]
	if !h.slot {
		return
	}
	h.slot = false
	j.housing.gathering--
	l.assign.Vacate(&j.assign, &h.tracker.assign, reducePhase)
	l.phases[reducePhase].completed(l.now)
	l.move(j)
}

// launchGathered launches the reduces whose slots were kept for them.
func (l *Live) launchGathered() {
	l.todo.gatheredNow = slices.DeleteFunc(l.todo.gatheredNow, func(x partition) bool {
		h := &x.job.housing.homes[x.p]
		switch {
		case l.jobs[x.job.facts.N()] != x.job || !h.slot || !l.canReduce(x.job, x.p):
			h.told = false
			return true
		case !x.job.runnable() || !h.tracker.fit():
			return false
		}
		h.told = false
		l.dropSurplus(h.tracker)
		if h.slot {
			l.launch(x.job, &x.job.reduces[x.p], h.tracker, wire.AttemptID{})
		}
		return true
	})
}

// dropSurplus has no more slots of a tracker held than it has. Under an earlier leader
// others had them too, or there were more.
func (l *Live) dropSurplus(t *tracker) {
	for k := len(l.order) - 1; k >= 0 && t.assign.Free(reducePhase) < 0; k-- {
		j := l.order[k]
		if homes := t.hosting.homes[j]; homes != nil && j.housing.gathering > 0 {
			for _, p := range slices.Backward(slices.Collect(homes.All())) {
				if t.assign.Free(reducePhase) < 0 {
					l.letGo(j, p)
				}
			}
		}
	}
}

// letGoAll has a job that is suspended hold no slots in which nothing runs.
func (l *Live) letGoAll(j *job) {
	for p := 0; p < len(j.housing.homes) && j.housing.gathering > 0; p++ {
		l.letGo(j, p)
	}
}

// letGo has a partition gathered on without a slot. Then it waits for one like those
// of other jobs.
func (l *Live) letGo(j *job, p int) {
	if j.housing.homes[p].slot {
		l.freeSlot(j, p)
		l.updateReduce(j, p)
	}
}

// partition is one of a job.
type partition struct {
	job *job
	p   int
}

// dropHome forgets what a home has of its tracker.
func (l *Live) dropHome(j *job, p int) {
	h := &j.housing.homes[p]
	l.freeSlot(j, p)
	l.landed(h)
	h.tracker.hosting.load = max(0, h.tracker.hosting.load-h.bytes)
}
