package whatif

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// play is a replay under way.
type play struct {
	*State
	needs    menu.Needs
	plan     Planner
	now      float64 // seconds since State.Now
	jobs     []*job  // by id
	byID     map[wire.JobID]*job
	trackers []tracker
	index    map[string]int // of trackers, by name
	slots    [2]int
	phases   [2]planned
	speeds   [2]*hmhs.Speeds // nil: trackers are alike
	events   heap.Heap[event]
	lastSeq  int
	arrivals map[string]float64 // of batches
	pools    map[string]*poolUse
	holder   *pool.Holder

	phasesLeft, phasesAll int
	out                   Prediction
}

// job is a job in a replay.
type job struct {
	*Job
	index     int
	arrived   float64 // seconds since State.Now, negative
	begun     bool
	scheduled bool // its begin is an event
	held      bool
	pool      *poolUse
	reducible bool // its reduces may run
	ended     bool
	phases    [2]work
	left      float64 // as Shuffle.Left
	ready     float64 // as Shuffle.Ready
	each      float64 // bytes of the output of a map to come
}

// work is the state of a phase of a job.
type work struct {
	seconds  float64
	known    bool    // a scheduler knows the time of its tasks
	pending  int     // tasks
	joined   int     // tasks that run one after the other in a slot
	running  int     // slots
	tasks    int     // in these slots
	ends     float64 // sum of the ends of these tasks
	launched int     // so far, in this replay
	all      int     // that the replay launches
	queued   int     // pending tasks in queues of trackers
	target   int     // slots in the plan
	rank     int     // in the plan
}

// tracker is a task tracker in a replay.
type tracker struct {
	free [2]int
	ends [2][]float64 // of the running tasks, in no order
}

// planned is the plan of a phase.
type planned struct {
	dirty  bool // a plan is due
	made   bool
	jobs   int // in the plan
	queues [][]scheduler.Run
	shares []scheduler.ShuffleShare
}

// event is the end of a task, or the begin or the end of a job.
type event struct {
	at      float64
	seq     int
	kind    kind
	job     *job
	phase   int
	tracker int
	tasks   int // that ran in the slot
}

type kind uint8

const (
	taskEnds kind = iota
	jobBegins
	jobEnds
	otherEnds // an attempt of a job that is not in the replay
)

func (p *play) add(e event) {
	p.lastSeq++
	e.seq = p.lastSeq
	p.events.Push(e)
}

func newPlay(s *State, needs menu.Needs, plan Planner) *play {
	if s.Pools == nil {
		copied := *s
		copied.Pools = new(pool.Table)
		s = &copied
	}
	p := &play{State: s, needs: needs, plan: plan, byID: make(map[wire.JobID]*job), index: make(map[string]int), arrivals: make(map[string]float64), pools: make(map[string]*poolUse), holder: s.Pools.NewHolder()}
	p.events = heap.New(nil, func(a, b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq })
	p.trackers = make([]tracker, len(s.Trackers))
	for i, t := range s.Trackers {
		p.trackers[i].free, p.index[t.Name] = t.Slots, i
		for phase, n := range t.Slots {
			p.slots[phase] += n
		}
	}
	for phase, list := range s.Others {
		for _, r := range list {
			if r.Tracker >= 0 {
				p.occupy(phase, r.Tracker, max(r.Rest, leastSeconds))
				p.add(event{at: max(r.Rest, leastSeconds), kind: otherEnds, phase: phase, tracker: r.Tracker})
			}
		}
	}
	for phase, list := range s.Measured {
		if len(list) > 0 {
			p.speeds[phase] = hmhs.Estimate(list)
		}
	}
	p.out.Ends = make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		p.addJob(i)
	}
	p.join()
	return p
}

func (p *play) addJob(i int) {
	j := &job{Job: &p.Jobs[i], index: i, left: p.Jobs[i].Shuffle.Left, ready: p.Jobs[i].Shuffle.Ready, begun: p.Jobs[i].Begun}
	j.arrived = (j.Arrived - p.Now).Seconds()
	p.jobs, p.byID[j.ID] = append(p.jobs, j), j
	if p.pools[j.Pool] == nil {
		p.pools[j.Pool] = new(poolUse)
	}
	j.pool = p.pools[j.Pool]
	p.out.Ends[i] = math.Inf(1)
	if j.Batch != "" {
		if at, known := p.arrivals[j.Batch]; !known || j.arrived < at {
			p.arrivals[j.Batch] = j.arrived
		}
	}
	for phase := range j.phases {
		from, w := &j.Job.Phases[phase], &j.phases[phase]
		w.seconds, w.known = from.Seconds, from.Seconds > 0
		if !w.known {
			w.seconds = p.Usual[phase]
		}
		w.seconds = max(w.seconds, leastSeconds)
		w.pending, w.joined, w.rank = max(0, from.Left-len(from.Running)), 1, math.MaxInt32
		w.all = w.pending
		if from.Left > 0 {
			p.phasesAll++
		}
		for _, r := range from.Running {
			p.begin(j, phase, r.Tracker, 1, max(r.Rest, leastSeconds))
		}
	}
	if maps := j.phases[Map].pending + j.phases[Map].running; maps > 0 {
		j.each = max(0, j.left-j.ready) / float64(maps)
	} else {
		j.ready = j.left
	}
	p.phasesLeft = p.phasesAll
}

// leastSeconds is the shortest time of a task.
const leastSeconds = 1e-3

// begin lets tasks run in a slot.
func (p *play) begin(j *job, phase, on, tasks int, seconds float64) {
	w := &j.phases[phase]
	w.running++
	j.pool.used[phase]++
	w.tasks += tasks
	w.ends += p.now + seconds
	if on >= 0 {
		p.occupy(phase, on, p.now+seconds)
	}
	p.add(event{at: p.now + seconds, kind: taskEnds, job: j, phase: phase, tracker: on, tasks: tasks})
}

// occupy occupies a slot of a tracker until a time.
func (p *play) occupy(phase, on int, until float64) {
	t := &p.trackers[on]
	t.free[phase]--
	t.ends[phase] = append(t.ends[phase], until)
}

// vacate frees the slot that was occupied until a time.
func (p *play) vacate(phase, on int, until float64) {
	t := &p.trackers[on]
	t.free[phase]++
	i, last := slices.Index(t.ends[phase], until), len(t.ends[phase])-1
	t.ends[phase][i] = t.ends[phase][last]
	t.ends[phase] = t.ends[phase][:last]
}

// join joins tasks if there are too many. A job keeps at least four rounds of them.
func (p *play) join() {
	all := 0
	for _, j := range p.jobs {
		all += j.phases[Map].pending + j.phases[Reduce].pending
	}
	if all <= maxEvents {
		return
	}
	for _, j := range p.jobs {
		for phase := range j.phases {
			w := &j.phases[phase]
			w.joined = max(1, min((all+maxEvents-1)/maxEvents, w.pending/(4*max(1, p.slots[phase]))))
		}
	}
}

// maxPlayed is more events than any replay has.
const maxPlayed = 10_000_000

func (p *play) run(ctx context.Context) (*Prediction, error) {
	for _, j := range p.jobs {
		switch {
		case j.Closing > 0:
			p.add(event{at: j.Closing, kind: jobEnds, job: j})
		case j.begun:
			p.advance(j)
		}
	}
	p.fetchAtOnce()
	p.beginReady()
	p.hold()
	p.phases[Map].dirty, p.phases[Reduce].dirty = true, true
	for n := range maxPlayed {
		if n%1000 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := p.replan(); err != nil {
			return nil, err
		}
		p.assign(Map)
		p.assign(Reduce)
		if !p.step() {
			break
		}
	}
	for i, end := range p.out.Ends {
		if math.IsInf(end, 1) {
			return nil, fmt.Errorf("%w: %v", ErrNeverEnds, p.Jobs[i].ID)
		}
	}
	return &p.out, nil
}

// step goes to the next event, and handles all events of its time. It reports whether there was one.
func (p *play) step() bool {
	rates := p.fetchRates()
	at := p.nextShuffleEnd(rates)
	if len(p.events.Items) > 0 {
		at = min(at, p.events.Items[0].at)
	}
	if math.IsInf(at, 1) {
		return false
	}
	p.fetch(rates, at-p.now)
	p.now = at
	for len(p.events.Items) > 0 && p.events.Items[0].at <= at {
		e := p.events.Items[0]
		p.events.Pop()
		switch e.kind {
		case taskEnds:
			p.taskEnded(&e)
		case jobBegins:
			e.job.begun = true
			p.advance(e.job)
			p.hold()
		case jobEnds:
			p.jobEnded(e.job)
		case otherEnds:
			p.vacate(e.phase, e.tracker, e.at)
		}
	}
	p.fetchAtOnce()
	return true
}

func (p *play) taskEnded(e *event) {
	j, w := e.job, &e.job.phases[e.phase]
	w.running--
	j.pool.used[e.phase]--
	w.tasks -= e.tasks
	w.ends -= e.at
	if e.tracker >= 0 {
		p.vacate(e.phase, e.tracker, e.at)
	}
	if !w.known {
		w.known, p.phases[e.phase].dirty = true, true
	}
	if e.phase == Map && j.each > 0 {
		j.ready = min(j.left, j.ready+j.each*float64(e.tasks))
	}
	if w.running == 0 && w.pending == 0 {
		p.phases[e.phase].dirty = true
		p.phasesLeft--
		if e.phase == Map {
			j.ready = j.left
		}
		p.advance(j)
	}
	if w.running == 0 {
		p.hold()
	}
}

// advance does what a job's ended tasks allow.
func (p *play) advance(j *job) {
	maps, reduces := &j.phases[Map], &j.phases[Reduce]
	if j.ended || maps.pending+maps.running > 0 {
		p.phases[Map].dirty = true
		return
	}
	if reduces.pending+reduces.running > 0 {
		if !j.reducible && j.left <= 0 {
			j.reducible, p.phases[Reduce].dirty = true, true
		}
		return
	}
	j.ended = true
	p.add(event{at: p.now + p.Close, kind: jobEnds, job: j})
}

func (p *play) jobEnded(j *job) {
	j.ended = true
	p.out.Ends[j.index] = p.now
	p.beginReady()
	p.hold()
}

// beginReady schedules the begin of jobs with all of their input.
func (p *play) beginReady() {
	for _, j := range p.jobs {
		if j.begun || j.scheduled || j.Closing > 0 {
			continue
		}
		if !slices.ContainsFunc(j.After, func(id wire.JobID) bool { return p.byID[id] != nil && math.IsInf(p.out.Ends[p.byID[id].index], 1) }) {
			j.scheduled = true
			p.add(event{at: p.now + j.Lag, kind: jobBegins, job: j})
		}
	}
}

// hold decides which jobs may run by the limits of running jobs.
func (p *play) hold() {
	if len(p.Pools.Pools)+len(p.Pools.Users) == 0 {
		return
	}
	var jobs []*job
	var candidates []pool.Candidate
	for _, j := range p.jobs {
		if j.begun && !j.ended && j.Closing == 0 {
			runs := j.phases[Map].running+j.phases[Reduce].running > 0
			jobs, candidates = append(jobs, j), append(candidates, pool.Candidate{Limits: p.holder.Limits(j.User, j.Pool), Runs: runs, Priority: wire.Priority(j.Priority)})
		}
	}
	for i, why := range p.holder.Hold(candidates) {
		if held := why != ""; held != jobs[i].held {
			jobs[i].held = held
			p.phases[Map].dirty, p.phases[Reduce].dirty = true, true
		}
	}
}
