package core

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// paced is a cluster in virtual time. The times of tasks are random, and homes fetch at a fixed
// rate. It measures how well the core predicts ends.
type paced struct {
	t           testing.TB
	rnd         *rand.Rand
	now         time.Duration
	seq         int
	todo        timeline
	core        *Core
	index       uint64
	trackers    []*pacedTracker
	jobs        map[string]*pacedJob // by name
	byID        map[wire.JobID]*pacedJob
	records     []*history.Record
	workerStart time.Duration // how long a worker takes to start
	fetchRate   float64       // bytes a second that each tracker fetches; 0: no limit
	failed      int           // failed attempts
}

type pacedTracker struct {
	stream        Stream
	name          string
	fetcherFreeAt time.Duration // when it has fetched all outputs known so far
	homes         map[homeName]*simHome
	slowness      map[string]float64 // factors of task times, by job name
	running       map[wire.JobID]int // running tasks
	workers       map[wire.JobID]int
	fails         func(wire.Kind) bool // which attempts fail there; nil: none
}

// failTime is how long an attempt runs before it fails.
const failTime = 100 * time.Millisecond

type pacedJob struct {
	name          string
	maps, reduces int
	taskTime      [2]time.Duration
	spread        float64
	bytes         int64 // output of a map
	submitAt      time.Duration
	classical     bool
	fails         func(*pacedTracker, wire.TaskID) bool // which tasks fail on a tracker; nil: none
}

func newPaced(t testing.TB, seed uint64, scheduling wire.Scheduling, trackers, maps, reduces int) *paced {
	p := &paced{
		t: t, rnd: rand.New(rand.NewPCG(seed, 7)), jobs: make(map[string]*pacedJob), byID: make(map[wire.JobID]*pacedJob),
		core: New(Config{ID: "jt", Staging: "mem://s", History: true, Scheduling: scheduling}),
	}
	p.step(Elected{Term: 1, Wall: scenarioStart})
	p.settle()
	for i := range trackers {
		t := &pacedTracker{stream: Stream(i + 1), name: fmt.Sprintf("t%d", i+1), homes: make(map[homeName]*simHome), slowness: make(map[string]float64), running: make(map[wire.JobID]int), workers: make(map[wire.JobID]int)}
		p.trackers = append(p.trackers, t)
		p.step(FromTracker{Stream: t.stream, Message: &wire.Hello{
			Version: wire.Version, Tracker: t.name, Process: 1, Host: t.name, Addr: t.name + ":1", MapSlots: maps, ReduceSlots: reduces,
		}})
		p.settle()
		p.step(FromTracker{Stream: t.stream, Message: &wire.Inventory{}})
		p.heartbeat(t)
	}
	return p
}

func (p *paced) after(d time.Duration, do func()) {
	p.seq++
	heap.Push(&p.todo, moment{p.now + d, p.seq, do})
}

func (p *paced) heartbeat(t *pacedTracker) {
	p.step(FromTracker{Stream: t.stream, Message: &wire.Heartbeat{Rate: p.fetchRate}})
	p.after(time.Second, func() { p.heartbeat(t) })
}

// submit submits a job at its submitAt.
func (p *paced) submit(j *pacedJob) {
	p.jobs[j.name] = j
	p.after(j.submitAt-p.now, func() {
		p.step(Submit{Wall: scenarioStart + p.now.Milliseconds(), Submission: &wire.Submission{
			Key: fmt.Sprint(j.name, "@", j.submitAt), Staging: fmt.Sprint("mem://s/", j.name, "@", j.submitAt), Plan: wire.Plan{Jobs: []wire.JobPlan{{
				Name: j.name, Reduces: j.reduces, Properties: map[string]string{"quern.shuffle.split": fmt.Sprint(!j.classical)},
			}}},
		}})
	})
}

// run lets time pass until all jobs have ended.
func (p *paced) run(jobs int) {
	p.runUntil(func() bool { return len(p.records) >= jobs })
	if p.now > 10*time.Hour {
		p.t.Fatalf("only %d of %d jobs have ended after %v", len(p.records), jobs, p.now)
	}
}

// runUntil lets time pass until done, for ten hours at most.
func (p *paced) runUntil(done func() bool) {
	for !done() && p.now <= 10*time.Hour {
		at, wakes := p.core.Wake()
		if wakes && at <= p.todo[0].at {
			p.now = max(p.now, at)
			p.step(Tick{})
			checkWake(p.core, p.now, p.t.Fatalf)
			continue
		}
		m := heap.Pop(&p.todo).(moment)
		p.now = max(p.now, m.at)
		m.do()
	}
}

func (p *paced) step(ev Event) {
	for _, c := range p.core.Step(p.now, ev) {
		p.carryOut(c)
	}
}

func (p *paced) carryOut(c Command) {
	switch c := c.(type) {
	case Propose:
		p.index++
		index := p.index
		p.after(0, func() { p.step(Entry{Index: index, Term: 1, Data: c.Data}) })
	case Send:
		p.send(p.trackers[c.Stream-1], c.Message)
	case Allocate:
		p.after(2*time.Millisecond, func() {
			policy, err := menu.Policy(c.Policy)
			r := Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase}
			if err == nil {
				if r.Plan, r.Err = policy.Plan(c.Snapshot); r.Err == nil {
					r.Err = r.Plan.Validate(c.Snapshot)
				}
			}
			if r.Err != nil {
				p.t.Errorf("%s: %v", c.Policy, r.Err)
			}
			p.step(r)
		})
	case LoadSplits:
		splits := make([]Split, c.Maps)
		for i := range splits {
			splits[i].Bytes = 1 << 20
		}
		p.after(time.Millisecond, func() { p.step(SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Splits: splits}) })
	case WriteHistory:
		r := c.Record()
		if err := r.Unpack(); err != nil {
			p.t.Fatal(err)
		}
		p.records = append(p.records, r)
		p.after(time.Millisecond, func() { p.step(HistoryWritten{Epoch: c.Epoch, Job: c.Job}) })
	case RemoveStaging:
		p.after(time.Millisecond, func() { p.step(StagingRemoved{Epoch: c.Epoch, Key: c.Key}) })
	case Halt:
		p.t.Fatal(c.Err)
	}
}

// settle runs the events that are due now.
func (p *paced) settle() {
	for len(p.todo) > 0 && p.todo[0].at <= p.now {
		heap.Pop(&p.todo).(moment).do()
	}
}

func (p *paced) jobOf(id wire.JobID) *pacedJob {
	if p.byID[id] == nil {
		p.byID[id] = p.jobs[p.core.facts.Find(id).Name()]
	}
	return p.byID[id]
}

func (p *paced) send(t *pacedTracker, m wire.Message) {
	switch m := m.(type) {
	case *wire.Launch:
		p.launch(t, m)
	case *wire.Kill:
		p.report(t, 0, &wire.Report{Attempt: m.Attempt, State: wire.AttemptKilled, Result: &wire.Result{}})
	case *wire.Grant:
		p.report(t, 0, &wire.Report{Attempt: m.Attempt, State: wire.AttemptSucceeded, Result: &wire.Result{}})
	case *wire.SetHome:
		t.homes[homeName{m.Job, m.Partition}] = &simHome{request: m, outputs: make(map[int]wire.MapOutput)}
	case *wire.Outputs:
		for job, outputs := range outputsIn(m) {
			for partition := range p.byID[job].reduces { // in order, since a tracker fetches one after the other
				name := homeName{job, partition}
				if h := t.homes[name]; h != nil {
					p.gather(t, name, h, outputs)
				}
			}
		}
	}
}

func (p *paced) report(t *pacedTracker, after time.Duration, r *wire.Report) {
	p.after(after+time.Millisecond, func() { p.step(FromTracker{Stream: t.stream, Message: r}) })
}

func (p *paced) launch(t *pacedTracker, m *wire.Launch) {
	j, id := p.jobOf(m.Attempt.Task.Job), m.Attempt
	r := &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{}}
	if !id.Task.Kind.Slotted() {
		if id.Task.Kind == wire.Setup {
			r.Result.Splits = &wire.SplitsDone{Maps: j.maps, Hash: 1}
		}
		p.report(t, 50*time.Millisecond, r)
		return
	}
	if t.fails != nil && t.fails(id.Task.Kind) || j.fails != nil && j.fails(t, id.Task) {
		r.State, r.Result = wire.AttemptFailed, &wire.Result{Error: "simulated failure", Took: failTime}
		p.failed++
		p.report(t, failTime, r)
		return
	}
	factor := 1 + j.spread*p.rnd.NormFloat64()
	if f := t.slowness[j.name]; f > 0 {
		factor *= f
	}
	took := time.Duration(float64(j.taskTime[phaseOf(id.Task.Kind)]) * max(0.2, factor))
	job := id.Task.Job
	if t.running[job]++; t.running[job] > t.workers[job] {
		t.workers[job]++
		took += p.workerStart
	}
	p.after(took, func() { t.running[job]-- })
	r.Result.Took = took
	switch {
	case id.Task.Kind == wire.Map && j.reduces > 0:
		r.Result.Output = &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Digest: 1, Bytes: j.bytes}
	default:
		r.State, r.Result = wire.AttemptReady, nil
		p.after(took+time.Millisecond, func() {
			r.Digest = uint64(j.maps)
			if id.Task.Kind == wire.Map {
				r.Digest = 0
			}
			p.step(FromTracker{Stream: t.stream, Message: r})
		})
		return
	}
	p.report(t, took, r)
}

func (p *paced) gather(t *pacedTracker, name homeName, h *simHome, outputs []wire.MapOutput) {
	for _, o := range outputs {
		if _, ok := h.outputs[o.Map]; ok {
			continue
		}
		h.outputs[o.Map] = o
		bytes := o.Bytes / int64(p.byID[name.job].reduces)
		if p.fetchRate > 0 {
			t.fetcherFreeAt = max(t.fetcherFreeAt, p.now) + time.Duration(float64(bytes)/p.fetchRate*1e9)
		}
		r := &wire.HomeReport{
			Job: name.job, Partition: name.partition, Generation: h.request.Generation, Maps: len(h.outputs), Digest: uint64(len(h.outputs)),
			Bytes: bytes * int64(len(h.outputs)), Complete: len(h.outputs) == h.request.Maps,
		}
		p.after(max(t.fetcherFreeAt-p.now, 0)+5*time.Millisecond, func() { p.step(FromTracker{Stream: t.stream, Message: r}) })
	}
}
