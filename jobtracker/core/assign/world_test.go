package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// world is a cluster with random events. It has plain lists, which check compares with the Assigner
// after each round.
type world struct {
	t         testing.TB
	rnd       *rand.Rand
	a         *Assigner
	now       time.Duration
	number    int
	plan      uint64
	rooms     bool // trackers offer room, and jobs request it
	jobs      []*simJob
	trackers  []*simTracker
	exhausted int // rounds that may launch no more
	launched  int // number of maps
	reduced   int
	deferred  int // jobs, summed over rounds
	aside     int // maps, summed over rounds
	queued    int // tasks, summed over rounds
	saved     int // trackers, summed over rounds
	limits    map[string]pool.Pool
	idle      idleWorld
}

type simJob struct {
	Job
	splits     []Split
	priority   wire.Priority
	pool       string
	suspended  bool
	requests   [2]Room
	avoids     map[int][]*simTracker
	avoidUntil map[int]time.Duration // until when a map avoids these trackers; 0: it does not
	runs       map[int]*simTracker
	ready      map[*simTracker]int
	toGather   int
	reduces    []*simTracker
	alarms     []time.Duration
	bannedFrom map[*simTracker]bool

	leastLeft, mostLeft time.Duration // see passIdle
}

type simTracker struct {
	Tracker
	host, rack string
	offers     Room
	takesWork  bool
	isHeld     bool
	fit        int // used by checkRooms
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Second}
	w.a = New(w, 400*time.Millisecond)
	w.rooms = seed%2 == 1
	if seed%3 == 0 {
		w.a.manyPlaces = 2
	}
	w.setPools()
	w.setRule()
	for range 2 + w.rnd.IntN(4) {
		w.addTracker()
	}
	return w
}

func simJobOf(j *Job) *simJob             { return j.Owner.(*simJob) }
func simTrackerOf(t *Tracker) *simTracker { return t.Owner.(*simTracker) }

func (w *world) Now() time.Duration { return w.now }

func (w *world) Launch(job *Job, m int, t *Tracker) {
	j := simJobOf(job)
	switch {
	case t.free[Map] <= 0 || !t.takesWork || t.held || j.bannedFrom[simTrackerOf(t)]:
		w.t.Fatalf("map %d of job %d is launched on tracker %d, which has no free slot for it", m, j.number, t.index)
	case j.Job.pool.Full(Map) || j.barred || j.suspended:
		w.t.Fatalf("map %d is launched, but its job %d may take no slot", m, j.number)
	case j.runs[m] != nil || j.pending.Has(m) || j.aside.Has(m):
		w.t.Fatalf("map %d of job %d is launched twice", m, j.number)
	}
	w.checkRoom(j, simTrackerOf(t), Map)
	j.runs[m] = simTrackerOf(t)
	w.launched++
	w.a.Occupy(job, t, Map)
}

func (w *world) LaunchReduce(job *Job, at *Tracker, gather bool) bool {
	j, t := simJobOf(job), simTrackerOf(at)
	if !w.MayReduce(job, at) {
		return false
	}
	w.checkRoom(j, t, Reduce)
	switch {
	case j.ready[t] > 0:
		j.ready[t]--
		w.a.AddReady(job, at, -1)
	case gather && j.toGather > 0:
		j.toGather--
	default:
		return false
	}
	j.reduces = append(j.reduces, t)
	w.reduced++
	w.a.Occupy(job, at, Reduce)
	w.setTakesWork(t)
	return true
}

func (w *world) MayReduce(job *Job, at *Tracker) bool {
	j := simJobOf(job)
	return j.ready[simTrackerOf(at)] > 0 || j.toGather > 0
}

func (w *world) Runnable(j *Job) bool { return j.HasSplits() && !simJobOf(j).suspended && !j.dropped }
func (w *world) ToGather(j *Job) int  { return simJobOf(j).toGather }
func (w *world) Pool(j *Job) (string, wire.Priority) {
	return simJobOf(j).pool, simJobOf(j).priority
}

func (w *world) MayRetry(j *Job, m int, t *Tracker, strict bool) bool {
	return simJobOf(j).mayRun(m, simTrackerOf(t), strict)
}

func (j *simJob) mayRun(m int, t *simTracker, strict bool) bool {
	return !j.bannedFrom[t] && (!slices.Contains(j.avoids[m], t) || !strict && j.avoidUntil[m] == 0)
}

func (w *world) StopAvoiding(job *Job, m int) bool {
	j := simJobOf(job)
	if slices.ContainsFunc(w.trackers, func(t *simTracker) bool { return t.takesMaps && !j.bannedFrom[t] && !slices.Contains(j.avoids[m], t) }) {
		return false
	}
	j.avoidUntil[m] = 0
	return true
}

func (w *world) Releases(t *Tracker, all []time.Duration) []time.Duration {
	for _, j := range w.jobs {
		for m, on := range j.runs {
			if &on.Tracker == t {
				all = append(all, w.a.Remaining(&j.Job, j.LevelOf(m, t), 10*time.Millisecond))
			}
		}
	}
	return all
}

func (w *world) Alarm(j *Job, at time.Duration) { simJobOf(j).alarms = append(simJobOf(j).alarms, at) }
func (w *world) PlanNow(int)                    {}
func (w *world) PlanSoon(int)                   {}

func (w *world) setTakesWork(t *simTracker) { w.a.SetTakesWork(&t.Tracker, t.takesWork, true) }

func (w *world) addTracker() {
	i := w.rnd.IntN(6)
	t := &simTracker{host: fmt.Sprintf("h%d", i), rack: fmt.Sprintf("/r%d", i%2), takesWork: w.rnd.IntN(8) > 0}
	w.a.AddTracker(&t.Tracker, t, t.host, [2]int{1 + w.rnd.IntN(3), 1})
	w.a.SetRack(&t.Tracker, t.rack)
	w.setOffer(t)
	w.trackers = append(w.trackers, t)
	w.setTakesWork(t)
}

func (w *world) dropTracker(t *simTracker) {
	t.takesWork = false
	w.setTakesWork(t)
	w.a.DropTracker(&t.Tracker)
	w.trackers = without(w.trackers, t)
	for _, j := range w.jobs {
		for _, m := range sorted(j.runs) {
			if j.runs[m] == t {
				w.end(j, m)
				w.a.AddPending(&j.Job, m)
			}
		}
		w.a.AddReady(&j.Job, &t.Tracker, -j.ready[t])
		delete(j.ready, t)
		delete(j.bannedFrom, t)
		for i := len(j.reduces) - 1; i >= 0; i-- {
			if j.reduces[i] == t {
				w.endReduce(j, i)
			}
		}
		w.a.MarkChanged(&j.Job)
	}
}

func (w *world) addJob() {
	w.number++
	j := &simJob{
		priority: wire.Priority(int(wire.VeryLow) + w.rnd.IntN(int(wire.VeryHigh-wire.VeryLow)+1)),
		pool:     []string{"", "a", "b"}[w.rnd.IntN(3)],
		avoids:   make(map[int][]*simTracker), avoidUntil: make(map[int]time.Duration),
		runs: make(map[int]*simTracker), ready: make(map[*simTracker]int),
	}
	w.a.AddJob(&j.Job, w.number, j)
	w.setRequests(j)
	w.jobs = append(w.jobs, j)
	j.splits = make([]Split, w.rnd.IntN(12))
	for m := range j.splits {
		for range w.rnd.IntN(3) {
			i := w.rnd.IntN(7)
			j.splits[m].Bytes = 1 << 20
			j.splits[m].Hosts = append(j.splits[m].Hosts, fmt.Sprintf("h%d", i))
			j.splits[m].Racks = append(j.splits[m].Racks, fmt.Sprintf("/r%d", i%2))
		}
		w.a.AddPending(&j.Job, m)
	}
	if w.rnd.IntN(4) > 0 {
		w.locate(j)
	}
}

func (w *world) locate(j *simJob) {
	w.a.SetSplits(&j.Job, j.splits)
	w.a.MarkChanged(&j.Job)
}

// end ends the attempt of a map.
func (w *world) end(j *simJob, m int) {
	t := j.runs[m]
	delete(j.runs, m)
	w.a.Vacate(&j.Job, &t.Tracker, Map)
}

func (w *world) endReduce(j *simJob, i int) {
	t := j.reduces[i]
	j.reduces = slices.Delete(j.reduces, i, i+1)
	w.a.Vacate(&j.Job, &t.Tracker, Reduce)
}

func (w *world) dropJob(j *simJob) {
	w.a.Clear(&j.Job)
	for t, n := range j.ready {
		w.a.AddReady(&j.Job, &t.Tracker, -n)
		w.setTakesWork(t)
	}
	j.toGather = 0
	for _, m := range sorted(j.runs) {
		w.end(j, m)
	}
	for len(j.reduces) > 0 {
		w.endReduce(j, 0)
	}
	w.a.DropJob(&j.Job)
	w.jobs = without(w.jobs, j)
	for _, list := range [][]*Job{w.a.jobs, w.a.jobsWithAside, w.a.jobsShutOut, w.a.deferred, w.a.InLine(Map), w.a.InLine(Reduce)} {
		if slices.Contains(list, &j.Job) {
			w.t.Fatalf("job %d was dropped, but is in a list", j.number)
		}
	}
}

func sorted(runs map[int]*simTracker) []int {
	var all []int
	for m := range runs {
		all = append(all, m)
	}
	slices.Sort(all)
	return all
}

func (w *world) setPools() {
	limit := func() int { return []int{pool.Unlimited, 0, 1, 2, 4}[w.rnd.IntN(5)] }
	table := []pool.Pool{
		{Name: "a", Max: [2]int{limit(), limit()}, MaxRunning: limit()},
		{Name: "b", Max: [2]int{limit(), pool.Unlimited}, MaxRunning: pool.Unlimited},
	}[w.rnd.IntN(2):]
	w.limits = make(map[string]pool.Pool)
	for _, p := range table {
		w.limits[p.Name] = p
	}
	w.a.SetPools(table)
}

func (w *world) setRule() {
	w.a.SetRule([]locality.Rule{{}, {Kind: locality.Fixed, Delay: 300 * time.Millisecond}, {Kind: locality.Paper}, {Kind: locality.Dynamic}}[w.rnd.IntN(4)])
}

func (w *world) setPlan() {
	phase := w.rnd.IntN(2)
	var targets []Target
	var queues []Queue
	for _, i := range w.rnd.Perm(len(w.jobs)) {
		if w.rnd.IntN(4) > 0 {
			targets = append(targets, Target{Job: &w.jobs[i].Job, Slots: w.rnd.IntN(5)})
		}
	}
	for _, t := range w.trackers {
		if len(w.jobs) > 0 && w.rnd.IntN(8) == 0 {
			queues = append(queues, Queue{&t.Tracker, []Run{{&w.jobs[w.rnd.IntN(len(w.jobs))].Job, 1 + w.rnd.IntN(3)}}})
		}
	}
	w.plan++
	w.a.SetPlan(phase, w.plan, targets, queues)
}

// act makes a random event happen.
func (w *world) act() {
	var j *simJob
	if len(w.jobs) > 0 {
		j = w.jobs[w.rnd.IntN(len(w.jobs))]
	}
	var t *simTracker
	if len(w.trackers) > 0 {
		t = w.trackers[w.rnd.IntN(len(w.trackers))]
	}
	switch n := w.rnd.IntN(100); {
	case n < 3:
		w.addTracker()
	case n < 5 && t != nil:
		w.dropTracker(t)
	case n < 10 && t != nil:
		t.takesWork = !t.takesWork
		w.setTakesWork(t)
	case n < 13 && t != nil:
		w.a.AddFree(&t.Tracker, Map, 1-2*w.rnd.IntN(2))
		w.setTakesWork(t)
	case n < 23 || j == nil:
		w.addJob()
	case n < 26:
		w.dropJob(j)
	case n < 29:
		j.suspended = !j.suspended
		w.a.MarkChanged(&j.Job)
	case n < 30:
		j.pool, j.priority = []string{"", "a", "b"}[w.rnd.IntN(3)], wire.Priority(int(wire.VeryLow)+w.rnd.IntN(5))
		w.a.MarkChanged(&j.Job)
	case n < 36 && !j.HasSplits():
		w.locate(j)
	case n < 40:
		w.setPlan()
	case n < 42:
		w.a.DropPlan(w.rnd.IntN(2))
	case n < 44:
		w.setPools()
	case n < 46:
		w.setRule()
	case n < 48 && t != nil:
		if j.bannedFrom == nil {
			j.bannedFrom = make(map[*simTracker]bool)
		}
		j.bannedFrom[t] = !j.bannedFrom[t]
		w.a.SetBanned(&j.Job, &t.Tracker, j.bannedFrom[t])
	case n == 48 && t != nil && w.rnd.IntN(4) == 0:
		w.setOffer(t)
	case n == 48 && t != nil && w.rooms && w.rnd.IntN(2) == 0:
		w.a.SaveUntil(&j.Job, w.rnd.IntN(2), &t.Tracker, w.now+saveAfter/8)
	case n < 49 && t != nil:
		t.isHeld = !t.isHeld
		w.a.SetHeld(&t.Tracker, t.isHeld)
	case n < 52 && t != nil:
		j.ready[t]++
		w.a.AddReady(&j.Job, &t.Tracker, 1)
		w.setTakesWork(t)
		w.a.MarkChanged(&j.Job)
	case n < 54:
		j.toGather++
		w.a.MarkChanged(&j.Job)
	case n < 58 && len(j.reduces) > 0:
		w.endReduce(j, 0)
		w.a.MarkChanged(&j.Job)
	case n < 60 && len(j.splits) > 0: // a map's output is lost, or no longer needed
		m := w.rnd.IntN(len(j.splits))
		if j.runs[m] == nil && w.rnd.IntN(2) == 0 {
			w.a.AddPending(&j.Job, m)
		} else {
			w.a.RemovePending(&j.Job, m)
		}
	case len(j.runs) > 0:
		m := sorted(j.runs)[0]
		w.endMap(j, m, w.rnd.IntN(3) == 0)
	}
}

func (w *world) endMap(j *simJob, m int, fails bool) {
	t := j.runs[m]
	w.end(j, m)
	w.a.MarkChanged(&j.Job)
	if !fails {
		took := time.Duration(1+w.rnd.IntN(200)) * time.Millisecond
		w.a.AddMapTime(&j.Job, j.LevelOf(m, &t.Tracker), took, wire.Reads{Rack: wire.Reading{Bytes: 1 << 20, Took: took / 2}})
		return
	}
	j.avoids[m] = append(j.avoids[m], t)
	j.avoidUntil[m] = w.now + 200*time.Millisecond
	j.SetFailed(m)
	w.a.AddPending(&j.Job, m)
}

// round advances the time and fills the free slots.
func (w *world) round() {
	passed := time.Duration(w.rnd.IntN(60)) * time.Millisecond
	if w.rooms && w.rnd.IntN(10) == 0 {
		passed += saveAfter / 4
	}
	w.passIdle(passed)
	w.now += passed
	for _, j := range w.jobs {
		for m, until := range j.avoidUntil {
			if until > 0 && until <= w.now {
				j.avoidUntil[m] = 0
				w.a.BringBack(&j.Job, m)
			}
		}
		before := len(j.alarms)
		j.alarms = slices.DeleteFunc(j.alarms, func(at time.Duration) bool { return at <= w.now })
		if len(j.alarms) < before {
			w.a.Recall(&j.Job)
		}
	}
	w.a.ExpireQueues(Map)
	w.a.ExpireQueues(Reduce)
	for {
		w.a.AllowLaunches(1 + w.rnd.IntN(20))
		w.a.AssignMaps()
		w.a.AssignReduces()
		for !w.a.Exhausted() && w.a.MapsWait() {
			w.a.AssignMaps()
		}
		if !w.a.Exhausted() {
			return
		}
		w.exhausted++
	}
}
