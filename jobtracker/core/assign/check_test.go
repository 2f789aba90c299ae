package assign

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler/pool"
)

// TestRandomWorlds makes random changes to jobs, trackers, plans and pools. After each round it
// compares the Assigner's state with a simple computation, and checks the invariants.
func TestRandomWorlds(t *testing.T) {
	launched, reduced, deferred, aside, queued, saved, exhausted, left := 0, 0, 0, 0, 0, 0, 0, 0
	for seed := range uint64(151) {
		if seed == 150 {
			seed = 3345 // a reduce ends a saving, and then a job that was shut out has a free slot
		}
		w := newWorld(t, seed)
		for range 150 {
			w.act()
			w.round()
			w.check()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		launched, reduced, deferred, aside = launched+w.launched, reduced+w.reduced, deferred+w.deferred, aside+w.aside
		queued, saved, exhausted, left = queued+w.queued, saved+w.saved, exhausted+w.exhausted, left+w.idle.left
	}
	t.Logf("%d maps launched, %d reduces, %d times a job was deferred, %d times a map set aside, %d times tasks in a queue, %d times a tracker saved, %d rounds exhausted, %d times a job had left slots",
		launched, reduced, deferred, aside, queued, saved, exhausted, left)
	if min(launched, reduced, deferred, aside, queued, saved, exhausted, left) < 100 {
		t.Error("too few events")
	}
}

func (w *world) check() {
	w.checkSlots()
	w.checkLeft()
	w.checkLines()
	w.checkPools()
	w.checkRooms()
	for _, j := range w.jobs {
		w.aside += j.aside.Len()
		w.checkJob(j)
		w.checkQueued(j)
		if j.HasSplits() {
			w.checkIndex(j)
		}
	}
}

// checkSlots checks A1 and A2.
func (w *world) checkSlots() {
	if w.a.MapsWait() {
		w.t.Errorf("map slots are free, and jobs wait in line for them")
	}
	takesMaps := 0
	for _, t := range w.trackers {
		i := int(t.index)
		if t.TakesMaps() {
			takesMaps++
		}
		for phase := range w.a.phases {
			if free := t.takesWork && !t.isHeld && t.Free(phase) > 0; w.a.FreeTrackers(phase).Has(i) != free {
				w.t.Errorf("tracker %d is free for phase %d: %v", i, phase, !free)
			}
		}
		free, demanded := w.a.FreeTrackers(Map).Has(i), false
		for _, j := range w.jobs {
			if free && j.ShutOut() && !j.bannedFrom[t] && j.FreeFor(Map).Has(i) {
				w.t.Errorf("job %d is shut out, and tracker %d has a free map slot", j.number, i)
			}
			for m := range j.pending.All() {
				demanded = demanded || j.Indexed() && slices.Contains(j.splits[m].Hosts, t.host)
			}
			if j.FreeFor(Map).Has(i) && w.a.positionOf(Map, &j.Job).inLine && j.MayTake(Map) && w.a.pickLocal(&j.Job, &t.Tracker, false) >= 0 {
				w.t.Errorf("tracker %d has a free map slot that is local to job %d", i, j.number)
			}
			if j.FreeFor(Reduce).Has(i) && j.MayTake(Reduce) && (j.ready[t] > 0 || j.toGather > 0) {
				w.t.Errorf("tracker %d has a free reduce slot, and job %d a partition for it", i, j.number)
			}
		}
		if w.a.unclaimed.Has(i) != (free && !demanded) {
			w.t.Errorf("tracker %d: free map slot %v, pending maps local to it %v, but unclaimed is %v", i, free, demanded, !(free && !demanded))
		}
	}
	if w.a.MapTrackers() != takesMaps {
		w.t.Errorf("%d trackers take maps, not %d", takesMaps, w.a.MapTrackers())
	}
}

// checkLines checks A3.
func (w *world) checkLines() {
	for phase := range w.a.phases {
		line := &w.a.phases[phase].line
		var order, deferred []*Job
		for _, j := range w.jobs {
			s := w.a.positionOf(phase, &j.Job)
			full := w.poolFull(j, phase)
			if may := !full && !w.barred(j) && w.Runnable(&j.Job); j.MayTake(phase) != may || w.a.mayTake(&j.Job, phase) != may {
				w.t.Errorf("job %d may have slots of phase %d: %v, want %v", j.number, phase, j.MayTake(phase), may)
			}
			switch {
			case !s.inLine:
			case line.of(&j.Job) != s:
				w.t.Errorf("job %d is at %+v in the line of phase %d, not at %+v", j.number, line.of(&j.Job), phase, s)
			case full:
			case s.deferred:
				deferred = append(deferred, &j.Job)
			default:
				order = append(order, &j.Job)
			}
		}
		byPosition := func(a, b *Job) int {
			x, y := w.a.positionOf(phase, a), w.a.positionOf(phase, b)
			return x.compare(&y)
		}
		slices.SortFunc(order, byPosition)
		slices.SortFunc(deferred, byPosition)
		var inLine []*Job
		for index := range line.deferredInOrder(false) {
			inLine = append(inLine, w.a.jobs[index])
		}
		if !slices.Equal(w.a.InLine(phase), order) || line.open != len(order) || !slices.Equal(inLine, deferred) {
			w.t.Errorf("the line of phase %d has %d jobs and %d deferred ones, not %d and %d, or in another order",
				phase, line.open, len(inLine), len(order), len(deferred))
		}
	}
}

// poolFull reports whether the jobs of a job's pool have all slots that it may have.
func (w *world) poolFull(j *simJob, phase int) bool {
	limit, used := w.limits[j.pool].Max[phase], 0
	for _, other := range w.jobs {
		if other.pool == j.pool {
			used += other.UsedSlots(phase)
		}
	}
	return w.limits[j.pool].Name != "" && limit != pool.Unlimited && used >= limit
}

// barred reports whether a job gets no slots since enough others of its pool have some, or come first.
func (w *world) barred(j *simJob) bool {
	limit := w.limits[j.pool].MaxRunning
	if w.limits[j.pool].Name == "" || limit == pool.Unlimited || j.usedSlots != [2]int{} || !w.Runnable(&j.Job) {
		return false
	}
	for _, other := range w.jobs {
		if other == j || other.pool != j.pool {
			continue
		}
		earlier := other.priority > j.priority || other.priority == j.priority && other.number < j.number
		if other.usedSlots != [2]int{} || w.Runnable(&other.Job) && earlier {
			limit--
		}
	}
	return limit <= 0
}

// checkPools checks the counts of pools of the table. Launch checks A5.
func (w *world) checkPools() {
	for name, p := range w.a.pools {
		used, jobs := [2]int{}, 0
		for _, j := range w.jobs {
			if j.pool != name || j.Pool() == nil {
				continue
			}
			jobs++
			for phase := range used {
				used[phase] += j.UsedSlots(phase)
			}
		}
		if p.usedSlots != used || p.reserved != 0 || len(p.jobs) != jobs {
			w.t.Errorf("pool %s: %d jobs with %v slots, not %d with %v", name, jobs, used, len(p.jobs), p.usedSlots)
		}
	}
}

// checkQueued checks the number of a job's tasks in queues.
func (w *world) checkQueued(j *simJob) {
	for phase := range w.a.phases {
		n := 0
		for _, t := range w.trackers {
			for _, q := range w.a.phases[phase].queueOf[t.index] {
				if q.job == &j.Job {
					n += q.tasks
				}
			}
		}
		if w.queued += n; j.Queued(phase) != n {
			w.t.Errorf("job %d has %d tasks of phase %d in queues, not %d", j.number, n, phase, j.Queued(phase))
		}
	}
}

// checkJob checks A4, and that each map is in the right sets.
func (w *world) checkJob(j *simJob) {
	for m := range j.splits {
		switch {
		case j.relaxed.Has(m) && !j.pending.Has(m), j.aside.Has(m) && j.pending.Has(m):
			w.t.Errorf("job %d map %d: pending %v, relaxed %v, set aside %v", j.number, m, j.pending.Has(m), j.relaxed.Has(m), j.aside.Has(m))
		case j.waitingSince[int32(m)] > j.wait.Total(w.now):
			w.t.Errorf("job %d map %d waits since %v, after the total wait %v", j.number, m, j.waitingSince[int32(m)], j.wait.Total(w.now))
		}
		for i := range j.FreeFor(Map).All() {
			if j.aside.Has(m) && j.MayTake(Map) && j.mayRun(m, simTrackerOf(w.a.trackers[i]), false) {
				w.t.Errorf("job %d map %d is set aside, and may run on tracker %d, which has a free slot", j.number, m, i)
			}
		}
	}
	until, deferred := j.Deferred()
	if !deferred {
		return
	}
	w.deferred++
	if j.relaxed.Len() > 0 || j.Pending() == 0 || until < w.now || len(j.alarms) == 0 || slices.Min(j.alarms) > until {
		w.t.Errorf("job %d is deferred until %v with %d pending maps, %d of them relaxed; the time is %v, and alarms are at %v",
			j.number, until, j.Pending(), j.relaxed.Len(), w.now, j.alarms)
	}
	if limit := w.now + max(locality.Start, time.Second); until > limit {
		w.t.Errorf("job %d is deferred until %v, after %v", j.number, until, limit)
	}
}

// checkIndex checks A6: the locality index picks the same maps as a search of all maps.
func (w *world) checkIndex(j *simJob) {
	for _, t := range w.trackers {
		for m, s := range j.splits {
			if level := locality.Level(s.Hosts, s.Racks, t.host, t.rack); j.LevelOf(m, &t.Tracker) != level {
				w.t.Errorf("job %d map %d is at level %v on tracker %d, not %v", j.number, m, j.LevelOf(m, &t.Tracker), t.index, level)
			}
		}
		for _, strict := range []bool{true, false} {
			lowest := func(may func(m int) bool) int {
				for m := range j.splits {
					if j.pending.Has(m) && j.mayRun(m, t, strict) && may(m) {
						return m
					}
				}
				return -1
			}
			inRack := func(m int) bool { return slices.Contains(j.splits[m].Racks, t.rack) }
			want := [3]int{
				lowest(func(m int) bool { return slices.Contains(j.splits[m].Hosts, t.host) }),
				lowest(inRack),
				lowest(func(m int) bool { return j.relaxed.Has(m) && inRack(m) }),
			}
			got := [3]int{
				w.a.pickLocal(&j.Job, &t.Tracker, strict),
				w.a.pickInRack(&j.Job, pending, &t.Tracker, strict),
				w.a.pickInRack(&j.Job, relaxed, &t.Tracker, strict),
			}
			if got != want {
				w.t.Errorf("job %d on tracker %d: picks maps %v, want %v", j.number, t.index, got, want)
			}
		}
	}
	for m, s := range j.splits {
		live := make(map[string]bool)
		for _, t := range w.trackers {
			if t.takesMaps && !j.bannedFrom[t] && slices.Contains(s.Hosts, t.host) {
				live[t.host] = true
			}
		}
		if int(j.in.live[m]) != len(live) {
			w.t.Errorf("job %d map %d has input on %d nodes with trackers that take maps, not %d", j.number, m, len(live), j.in.live[m])
		}
		if waits := len(live) > 0 && len(j.avoids[m]) == 0; j.pending.Has(m) && !waits && !j.relaxed.Has(m) {
			w.t.Errorf("job %d map %d waits for a local slot, but no tracker on its nodes takes maps", j.number, m)
		}
	}
}
