package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/wire"
)

// world is one run.
type world struct {
	rnd        *rand.Rand
	shuffles   *rand.Rand // draws the shuffle properties of jobs
	now        time.Duration
	seq        int
	todo       heap.Heap[moment]
	steps      int
	instant    instant
	calm       bool // the storm is over
	harmless   bool // no fault of the run can fail an attempt for good
	ended      bool // the run is over: nothing is carried out any more
	trace      []string
	rates      rates
	pace       time.Duration   // the longest duration of an undisturbed attempt
	latency    time.Duration   // likewise, of a call to the file system
	verify     time.Duration   // likewise, of verifying a map output
	keepLogs   bool            // trackers keep logs
	scheduling wire.Scheduling // initial settings of job trackers
	requested  wire.Scheduling // the last change of an operator
	changing   bool            // a change is not answered yet
	draining   int             // drain requests without an answer
	allocation core.PoolsRead  // content of the allocation file
	policies   []string        // policies that have answered
	sabotage   sabotage
	digest     decisions

	fs      *mem.FS
	raft    *raft
	jts     []*jobTracker
	tts     []*taskTracker
	nodes   map[string]node
	blocked map[way]int
	heals   []func() // remove cuts
	clients []*client
	book    book
}

// instant is the events at one time.
type instant struct {
	at     time.Duration
	steps  int
	events map[string]int // by node and type
}

// node is a machine with one process of the cluster.
type node interface {
	crash(down time.Duration)
	pause(how time.Duration)
	revive() // start or continue now
}

// way is a direction between two nodes.
type way struct{ from, to string }

// moment is a scheduled event, in the order of seq at equal times.
type moment struct {
	at  time.Duration
	seq int
	do  func()
}

func earlier(a, b moment) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// violation is the panic of a run that violates a check.
type violation string

func (w *world) fail(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...)))
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// fault is a chance of a fault; there are none in the calm.
func (w *world) fault(p float64) bool { return !w.calm && w.chance(p) }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	w.todo.Push(moment{w.now + d, w.seq, do})
}

// run advances time until a condition holds, or to the end.
func (w *world) run(until func() bool, end time.Duration) bool {
	for !until() {
		if len(w.todo.Items) == 0 || w.todo.Items[0].at > end {
			w.now = max(w.now, end)
			return until()
		}
		m := w.todo.Items[0]
		w.todo.Pop()
		w.now = max(w.now, m.at)
		m.do()
	}
	return true
}

// maxSteps is above the needs of every run, to catch cores that keep each other busy.
const maxSteps = 400_000

// maxStepsAtOnce is above the needs of every instant of a run. Cores that exceed it answer each
// other, or themselves, and time does not pass.
const maxStepsAtOnce = 5_000

// stepped counts an event of a node's core, and bounds the events of a run and of an instant.
func (w *world) stepped(name string, ev any) {
	if w.steps++; w.steps > maxSteps {
		w.fail("the cores have been given %d events and have not come to an end", w.steps)
	}
	if w.now != w.instant.at {
		w.instant.at, w.instant.steps = w.now, 0
		clear(w.instant.events)
	}
	w.instant.events[fmt.Sprintf("%s %T", name, ev)]++
	if w.instant.steps++; w.instant.steps > maxStepsAtOnce {
		var most []string
		for _, event := range slices.Sorted(maps.Keys(w.instant.events)) {
			most = append(most, fmt.Sprintf("%d times %s", w.instant.events[event], event))
		}
		w.fail("no time passes: the cores have been given %d events at %v: %s", w.instant.steps, w.now, strings.Join(most, ", "))
	}
}

var errFault = errors.New("simulated fault")

// block cuts a direction until heal is called.
func (w *world) block(from, to string) (heal func()) {
	x := way{from, to}
	w.blocked[x]++
	healed := false
	return func() {
		if !healed {
			healed = true
			w.blocked[x]--
		}
	}
}

func (w *world) reaches(from, to string) bool { return w.blocked[way{from, to}] == 0 }

func (w *world) linked(a, b string) bool { return w.reaches(a, b) && w.reaches(b, a) }

const (
	// The cluster's bootstrap, Unix milliseconds.
	wallStart = 1_700_000_000_000

	stormy = 40 * time.Second
	bound  = 60 * time.Second // of virtual time, from the calm to the end of all jobs: see deadline
	quiet  = 60 * time.Second // in which leftovers must go
)

const clusterStaging = "mem://c/staging"

// newWorld draws a run.
func newWorld(r *Result) *world {
	seed := r.Options.Seed
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 3)), todo: heap.New(nil, earlier), sabotage: r.Options.sabotage, fs: newFiles(),
		nodes: make(map[string]node), blocked: make(map[way]int), instant: instant{events: make(map[string]int)},
	}
	if r.Options.Digest {
		w.digest = newDecisions()
	}
	w.book = newBook(r)
	plan, changes, shapes := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 4)), rand.New(rand.NewPCG(seed, 5))
	w.shuffles = rand.New(rand.NewPCG(seed, 6))
	w.scheduling = drawScheduling(seed, changes)
	w.drawPools(changes)
	w.operate(changes, changes.IntN(3))
	for i := range jobTrackers {
		n := newJobTracker(w, jobTrackerName(i))
		w.jts = append(w.jts, n)
		w.nodes[n.name] = n
	}
	w.raft = newRaft(w)
	for i := range 2 + plan.IntN(taskTrackers-1) {
		t := newTaskTracker(w, taskTrackerName(i))
		w.tts = append(w.tts, t)
		w.nodes[t.name] = t
	}
	w.latency = time.Millisecond + time.Duration(plan.Int64N(int64(20*time.Millisecond)))
	w.verify = 10*time.Millisecond + time.Duration(plan.Int64N(int64(2*time.Second)))
	w.keepLogs = plan.IntN(2) == 0
	w.pace = 100*time.Millisecond + time.Duration(plan.Int64N(int64(3*time.Second)))
	for i := range 1 + plan.IntN(5) {
		w.addClient(plan, changes, shapes, i)
	}
	return w
}

// play runs a seed and stores the outcome in r.
func play(r *Result) {
	w := newWorld(r)
	defer func() {
		w.ended = true
		for _, t := range w.tts {
			t.killProcesses()
		}
		if v := recover(); v != nil {
			text, ok := v.(violation)
			if !ok {
				text = violation(fmt.Sprintf("panic: %v\n%s", v, stack()))
			}
			r.Violation = string(text)
		}
		r.Trace, r.Elapsed, r.Steps, r.Leaders = w.trace, w.now, w.steps, len(w.book.leaders)
		r.Digest = w.digest.value()
		r.Outcomes = make(map[wire.State]int)
		for _, c := range w.clients {
			for _, id := range c.ids {
				if s, ok := w.status(id); ok {
					r.Outcomes[s.State]++
					r.NearMaps += s.Counters.Get(wire.JobCounters, wire.DataLocalMaps)
					r.FarMaps += s.Counters.Get(wire.JobCounters, wire.RackLocalMaps) + s.Counters.Get(wire.JobCounters, wire.OtherLocalMaps)
				}
			}
		}
	}()
	w.harmless = true
	for _, i := range r.Kept {
		w.begin(r.Faults[i])
		alone := len(r.Kept) == 1 && r.Faults[i].isSickness()
		w.harmless = w.harmless && (alone || !r.Faults[i].fails())
	}
	w.run(func() bool { return false }, stormy)
	w.heal()
	if !w.runToEnd() {
		w.fail("%v after the last fault not all jobs have ended:%s", w.now-stormy, w.unfinished())
	}
	r.Recovered = w.now - stormy
	w.run(w.tidy, w.now+quiet)
	w.run(func() bool { return false }, w.now+5*time.Second)
	w.checkEnd()
	w.checkSettings()
}

// runToEnd waits for the end of all jobs. It reports whether that is before the deadline, which
// moves as tasks are launched.
func (w *world) runToEnd() bool {
	for end := time.Duration(0); end < w.deadline(); {
		end = w.deadline()
		if w.run(w.allEnded, end) {
			return true
		}
	}
	return false
}

// deadline is the time by which all jobs must have ended: bound after the storm, plus the
// sequential time of the tasks launched since then, as in a pool of one slot. Repeated
// launches, which may be endless, do not move it.
func (w *world) deadline() time.Duration {
	return stormy + bound + time.Duration(len(w.book.sinceCalm))*w.pace
}
