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

// paced is a cluster in virtual time without faults: tasks take drawn times, and homes fetch at
// a rate. It shows how well the core predicts ends.
type paced struct {
	t        testing.TB
	rnd      *rand.Rand
	now      time.Duration
	seq      int
	todo     timeline
	core     *Core
	index    uint64
	trackers []*pacedTracker
	jobs     map[string]*pacedJob // by name
	byID     map[wire.JobID]*pacedJob
	records  []*history.Record
	start    time.Duration // start of a worker
	fetches  float64       // bytes a second of each tracker; 0: at once
	failed   int           // failed attempts
}

type pacedTracker struct {
	stream  Stream
	name    string
	fetched time.Duration // when its fetcher has finished its work
	homes   map[homeName]*simHome
	slow    map[string]float64 // factor of task times, by job name
	busy    map[wire.JobID]int // running tasks
	workers map[wire.JobID]int
	sick    func(wire.Kind) bool // which attempts fail there after sickTime; nil: none
}

// sickTime is the time of a failing attempt.
const sickTime = 100 * time.Millisecond

type pacedJob struct {
	name          string
	maps, reduces int
	take          [2]time.Duration
	spread        float64
	bytes         int64 // output of a map
	at            time.Duration
	classical     bool
	buggy         func(*pacedTracker, wire.TaskID) bool // which of its tasks fail on which tracker, after sickTime; nil: none
}

func newPaced(t testing.TB, seed uint64, scheduling wire.Scheduling, trackers, maps, reduces int) *paced {
	p := &paced{
		t: t, rnd: rand.New(rand.NewPCG(seed, 7)), jobs: make(map[string]*pacedJob), byID: make(map[wire.JobID]*pacedJob),
		core: New(Config{ID: "jt", Staging: "mem://s", History: true, Scheduling: scheduling}),
	}
	p.step(Elected{Term: 1, Wall: scenarioStart})
	p.settle()
	for i := range trackers {
		t := &pacedTracker{stream: Stream(i + 1), name: fmt.Sprintf("t%d", i+1), homes: make(map[homeName]*simHome), slow: make(map[string]float64), busy: make(map[wire.JobID]int), workers: make(map[wire.JobID]int)}
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
	p.step(FromTracker{Stream: t.stream, Message: &wire.Heartbeat{Rate: p.fetches}})
	p.after(time.Second, func() { p.heartbeat(t) })
}

// submit submits a job at its time.
func (p *paced) submit(j *pacedJob) {
	p.jobs[j.name] = j
	p.after(j.at-p.now, func() {
		p.step(Submit{Wall: scenarioStart + p.now.Milliseconds(), Submission: &wire.Submission{
			Key: fmt.Sprint(j.name, "@", j.at), Staging: fmt.Sprint("mem://s/", j.name, "@", j.at), Plan: wire.Plan{Jobs: []wire.JobPlan{{
				Name: j.name, Reduces: j.reduces, Properties: map[string]string{"quern.shuffle.split": fmt.Sprint(!j.classical)},
			}}},
		}})
	})
}

// run runs until all jobs have ended.
func (p *paced) run(jobs int) {
	p.until(func() bool { return len(p.records) >= jobs })
	if p.now > 10*time.Hour {
		p.t.Fatalf("%d of %d jobs have ended after %v", len(p.records), jobs, p.now)
	}
}

// until lets time pass, some hours at most.
func (p *paced) until(over func() bool) {
	for !over() && p.now <= 10*time.Hour {
		at, wakes := p.core.Wake()
		if wakes && at <= p.todo[0].at {
			p.now = max(p.now, at)
			p.step(Tick{})
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
		if err := c.Record.Unpack(); err != nil {
			p.t.Fatal(err)
		}
		p.records = append(p.records, c.Record)
		p.after(time.Millisecond, func() { p.step(HistoryWritten{Epoch: c.Epoch, Job: c.Job}) })
	case RemoveStaging:
		p.after(time.Millisecond, func() { p.step(StagingRemoved{Epoch: c.Epoch, Key: c.Key}) })
	case Halt:
		p.t.Fatal(c.Err)
	}
}

// settle runs what is due now.
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
		t.homes[homeName{m.Job, m.Partition}] = &simHome{set: m, has: make(map[int]wire.MapOutput)}
	case *wire.Outputs:
		for partition := range p.byID[m.Job].reduces { // in turn, since one fetches behind the other
			name := homeName{m.Job, partition}
			if h := t.homes[name]; h != nil {
				p.gather(t, name, h, m.Outputs)
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
	if t.sick != nil && t.sick(id.Task.Kind) || j.buggy != nil && j.buggy(t, id.Task) {
		r.State, r.Result = wire.AttemptFailed, &wire.Result{Error: "simulated failure", Took: sickTime}
		p.failed++
		p.report(t, sickTime, r)
		return
	}
	factor := 1 + j.spread*p.rnd.NormFloat64()
	if f := t.slow[j.name]; f > 0 {
		factor *= f
	}
	took := time.Duration(float64(j.take[phaseOf(id.Task.Kind)]) * max(0.2, factor))
	job := id.Task.Job
	if t.busy[job]++; t.busy[job] > t.workers[job] {
		t.workers[job]++
		took += p.start
	}
	p.after(took, func() { t.busy[job]-- })
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
		if _, ok := h.has[o.Map]; ok {
			continue
		}
		h.has[o.Map] = o
		bytes := o.Bytes / int64(p.byID[name.job].reduces)
		if p.fetches > 0 {
			t.fetched = max(t.fetched, p.now) + time.Duration(float64(bytes)/p.fetches*1e9)
		}
		r := &wire.HomeReport{
			Job: name.job, Partition: name.partition, Generation: h.set.Generation, Maps: len(h.has), Digest: uint64(len(h.has)),
			Bytes: bytes * int64(len(h.has)), Complete: len(h.has) == h.set.Maps,
		}
		p.after(max(t.fetched-p.now, 0)+5*time.Millisecond, func() { p.step(FromTracker{Stream: t.stream, Message: r}) })
	}
}
