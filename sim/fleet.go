package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/wire"
)

// Fleet is a cluster of any size and its workload, without faults.
type Fleet struct {
	Seed          uint64
	Trackers      int
	Slots         [2]int // of each tracker, for maps and for reduces
	Jobs          int
	Every         time.Duration // between two submissions
	Maps, Reduces int           // of each job
	AttemptTime   time.Duration // the longest of an attempt
	Kills         int           // attempts of each job that its client kills while they run, one in each AttemptTime
	Scheduler     string        // default: fifo
	Slowness      float64       // how many times longer Steps of job trackers take than by the rates; 0: 1
	Failover      time.Duration // the leader dies then, see Result.Rejoined; 0: it does not
	Properties    map[string]string
	Limits        core.Limits
	End           time.Duration // the run ends then, or when all jobs have ended; 0: an hour
	Meter         *Meter        // nil: Steps are not measured

	every func(*world) // called after each second; nil: none
}

// maxFleetSteps is more than any run of a fleet needs.
const maxFleetSteps = 100_000_000

// RunFleet runs a fleet. If it has no End, all jobs must succeed.
func RunFleet(f Fleet) (r *Result) {
	r = &Result{Options: Options{Seed: f.Seed}} // named: finish recovers from a violation
	w := emptyWorld(r)
	defer w.finish(r)
	w.scheduling = wire.Scheduling{Scheduler: f.Scheduler}.WithDefaults(wire.Scheduling{Scheduler: "fifo", Metric: "sum-response", Delay: "none"})
	w.allocation = core.PoolsRead{Err: errPools}
	w.calm, w.stepping = true, stepping{max: maxFleetSteps, factsEvery: 1000, meter: f.Meter}
	w.attemptTime, w.callTime, w.verifyTime = max(f.AttemptTime, time.Millisecond), 5*time.Millisecond, time.Second
	w.shape.slots, w.shape.limits, w.shape.calmFacts = f.Slots, f.Limits, true
	w.addNodes(f.Trackers)
	for _, n := range w.jts {
		n.load.slowness = f.Slowness
	}
	for i := range f.Jobs {
		w.addFleetJob(&f, i, fleetStart+time.Duration(i)*f.Every)
	}
	end := f.End
	if end == 0 {
		end = time.Hour
	}
	if f.Failover > 0 {
		w.failOver(f.Failover, end)
	}
	for w.now < end && !w.allEnded() {
		w.run(func() bool { return false }, min(w.now+time.Second, end))
		if f.every != nil {
			f.every(w)
		}
	}
	if f.End == 0 {
		w.checkFleet()
	}
	return r
}

func (w *world) addFleetJob(f *Fleet, i int, at time.Duration) {
	name := fmt.Sprintf("mem://c/in/%d", i)
	w.must(writeFile(w, name, make([]byte, inputBlock*f.Maps)))
	c := &client{w: w, erratic: make([]bool, 1), sub: &wire.Submission{
		Key: fmt.Sprintf("key%d", i), Staging: fmt.Sprintf("%s/key%d", clusterStaging, i), Owner: "sim",
		Program: wire.Program{Path: "sim"},
		Plan: wire.Plan{Jobs: []wire.JobPlan{{
			Name: fmt.Sprintf("job%d", i), Reduces: f.Reduces, Format: "text", Output: fmt.Sprintf("mem://c/out/%d", i),
			Inputs:     []wire.InputPlan{{Format: "lines", Paths: []string{name}}},
			Properties: map[string]string{"mapreduce.input.fileinputformat.split.minsize": fmt.Sprint(inputBlock)},
		}}},
	}}
	maps.Copy(c.sub.Plan.Jobs[0].Properties, f.Properties)
	w.clients = append(w.clients, c)
	w.after(at, c.stageAndSubmit)
	draw := rand.New(rand.NewPCG(f.Seed, uint64(i)))
	for k := range f.Kills {
		w.after(at+time.Duration(k+1)*f.AttemptTime, func() { c.endAttempt(false, draw) })
	}
}

// failOver kills the leader at a time, and waits until all task trackers take part again.
func (w *world) failOver(at, end time.Duration) {
	w.run(func() bool { return false }, at)
	old := w.raft.leader
	if old == nil {
		w.fail("at %v there is no leader that could die", at)
	}
	old.crash(end)
	w.run(func() bool { return w.raft.leader != nil && w.raft.leader != old }, end)
	elected, leader := w.now, w.raft.leader
	for w.now < end && !leader.core.IsLeader() || w.connectedTo(leader) < len(w.tts) {
		if w.run(func() bool { return false }, w.now+20*time.Millisecond); w.now >= end {
			w.fail("%v after the election %d of %d task trackers take part", w.now-elected, w.connectedTo(leader), len(w.tts))
		}
	}
	w.book.rejoined = w.now - elected
}

// connectedTo counts the task trackers that take part: the leader has their inventories.
func (w *world) connectedTo(n *jobTracker) (count int) {
	for _, t := range n.core.Cluster(n.clock()).Trackers {
		if t.Connected {
			count++
		}
	}
	return count
}

// fleetStart is when the first job is submitted: trackers have registered by then.
const fleetStart = 5 * time.Second

// checkFleet checks that all jobs have succeeded.
func (w *world) checkFleet() {
	for _, c := range w.clients {
		for _, id := range c.ids {
			if s, ok := w.status(id); !ok || s.State != wire.Succeeded {
				w.fail("%v of a fleet without faults is %v: %s", id, s.State, s.Error)
			}
		}
	}
	if !w.allEnded() {
		w.fail("after %v not all jobs of the fleet have ended:%s", w.now, w.unfinished())
	}
}

// emptyWorld makes a world without nodes and jobs.
func emptyWorld(r *Result) *world {
	seed := r.Options.Seed
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 3)), events: heap.New(nil, earlier), sabotage: r.Options.sabotage, badRecords: r.Options.BadRecords, mapFiles: r.Options.MapFiles, fs: newFiles(),
		nodes: make(map[string]node), blocked: make(map[nodePair]int), refused: make(map[Kind]bool), stepping: stepping{max: maxSteps, factsEvery: 1},
	}
	if r.Options.Digest {
		w.digest = newDecisions()
	}
	w.book = newBook(r)
	return w
}

// addNodes adds the job trackers, their log, and task trackers. The absent ones never start.
func (w *world) addNodes(taskTrackers int, absent ...string) {
	for i := range jobTrackers {
		n := newJobTracker(w, jobTrackerName(i))
		w.jts = append(w.jts, n)
		w.nodes[n.name] = n
	}
	w.raft = newRaft(w)
	for i := range taskTrackers {
		t := newTaskTracker(w, taskTrackerName(i))
		if slices.Contains(absent, t.name) {
			t.crash(lastingTime)
			continue
		}
		w.tts = append(w.tts, t)
		w.nodes[t.name] = t
	}
}
