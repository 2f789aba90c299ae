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

// world is the state of one run.
type world struct {
	rnd           *rand.Rand
	shuffles      *rand.Rand // draws the shuffle properties of jobs
	now           time.Duration
	seq           int
	events        heap.Heap[event]
	steps         int
	instant       instant
	calm          bool            // the storm is over
	lasting       bool            // faults last, and the workload is undisturbed by its users
	split         map[string]bool // task trackers with the fault SplitTrackers
	harmless      bool            // no fault of the run can fail an attempt for good
	trace         []string
	rates         rates
	attemptTime   time.Duration   // longest duration of an undisturbed attempt
	callTime      time.Duration   // longest duration of an undisturbed call to the file system
	verifyTime    time.Duration   // longest time to verify a map output
	keepLogs      bool            // trackers keep logs
	scheduling    wire.Scheduling // initial settings of job trackers
	requested     wire.Scheduling // the last change by an administrator
	changePending bool            // a change is not answered yet
	pendingDrains int             // drain requests without an answer
	allocation    core.PoolsRead  // content of the allocation file
	policies      []string        // policies that have answered
	sabotage      sabotage
	digest        decisions

	fs      *mem.FS
	raft    *raft
	jts     []*jobTracker
	tts     []*taskTracker
	nodes   map[string]node
	blocked map[nodePair]int
	heals   []func() // each ends a fault
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

// nodePair is a direction between two nodes.
type nodePair struct{ from, to string }

// event is a scheduled event. Events at equal times happen in the order of seq.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

func earlier(a, b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// violation is the value that fail panics with.
type violation string

func (w *world) fail(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...)))
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// fault draws whether a fault happens; in the calm none does.
func (w *world) fault(p float64) bool { return !w.calm && w.chance(p) }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	w.events.Push(event{w.now + d, w.seq, do})
}

// run advances time until a condition holds, or to the end.
func (w *world) run(until func() bool, end time.Duration) bool {
	for !until() {
		if len(w.events.Items) == 0 || w.events.Items[0].at > end {
			w.now = max(w.now, end)
			return until()
		}
		m := w.events.Items[0]
		w.events.Pop()
		w.now = max(w.now, m.at)
		m.do()
	}
	return true
}

// maxSteps is more than any run needs. It catches cores that keep each other busy forever.
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
	x := nodePair{from, to}
	w.blocked[x]++
	healed := false
	return func() {
		if !healed {
			healed = true
			w.blocked[x]--
		}
	}
}

func (w *world) reaches(from, to string) bool { return w.blocked[nodePair{from, to}] == 0 }

func (w *world) connected(a, b string) bool { return w.reaches(a, b) && w.reaches(b, a) }

const (
	// The cluster's bootstrap, Unix milliseconds.
	wallStart = 1_700_000_000_000

	stormTime    = 40 * time.Second // faults happen in this time
	recoveryTime = 60 * time.Second // from the storm to the end of all jobs, see deadline
	tidyTime     = 60 * time.Second // from the last job to the removal of all leftovers
)

const clusterStaging = "mem://c/staging"

// newWorld draws a cluster and its workload from a seed.
func newWorld(r *Result) *world {
	seed := r.Options.Seed
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 3)), events: heap.New(nil, earlier), sabotage: r.Options.sabotage, fs: newFiles(),
		nodes: make(map[string]node), blocked: make(map[nodePair]int), instant: instant{events: make(map[string]int)},
	}
	if r.Options.Digest {
		w.digest = newDecisions()
	}
	w.book = newBook(r)
	plan, changes, shapes := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 4)), rand.New(rand.NewPCG(seed, 5))
	w.shuffles = rand.New(rand.NewPCG(seed, 6))
	w.scheduling = drawScheduling(seed, changes)
	w.drawPools(changes)
	w.lasting = r.lasting != nil
	trackers := 2 + plan.IntN(taskTrackers-1)
	if w.lasting {
		trackers = r.lasting.trackers
	} else {
		w.changeScheduling(changes, changes.IntN(3))
	}
	for i := range jobTrackers {
		n := newJobTracker(w, jobTrackerName(i))
		w.jts = append(w.jts, n)
		w.nodes[n.name] = n
	}
	w.raft = newRaft(w)
	for i := range trackers {
		t := newTaskTracker(w, taskTrackerName(i))
		if w.lasting && r.lasting.absent && slices.Contains(r.lasting.sick, t.name) {
			t.crash(lastingTime)
			continue
		}
		w.tts = append(w.tts, t)
		w.nodes[t.name] = t
	}
	w.callTime = time.Millisecond + time.Duration(plan.Int64N(int64(20*time.Millisecond)))
	w.verifyTime = 10*time.Millisecond + time.Duration(plan.Int64N(int64(2*time.Second)))
	w.keepLogs = plan.IntN(2) == 0
	w.attemptTime = 100*time.Millisecond + time.Duration(plan.Int64N(int64(3*time.Second)))
	for i := range 1 + plan.IntN(5) {
		w.addClient(plan, changes, shapes, i)
	}
	return w
}

// play plays a run and stores the outcome in r.
func play(r *Result) {
	w := newWorld(r)
	defer func() {
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
					r.LocalMaps += s.Counters.Get(wire.JobCounters, wire.DataLocalMaps)
					r.RemoteMaps += s.Counters.Get(wire.JobCounters, wire.RackLocalMaps) + s.Counters.Get(wire.JobCounters, wire.OtherLocalMaps)
				}
			}
		}
	}()
	if w.lasting {
		w.playLasting(r)
		return
	}
	w.harmless = true
	for _, i := range r.Kept {
		w.schedule(r.Faults[i])
		alone := len(r.Kept) == 1 && r.Faults[i].isSickness()
		w.harmless = w.harmless && (alone || !r.Faults[i].canFailAttempts())
	}
	w.run(func() bool { return false }, stormTime)
	w.endStorm()
	if !w.runToEnd() {
		w.fail("%v after the last fault not all jobs have ended:%s", w.now-stormTime, w.unfinished())
	}
	r.Recovered = w.now - stormTime
	w.run(w.tidy, w.now+tidyTime)
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

// deadline is the time by which all jobs must have ended: recoveryTime after the storm, plus
// the time of the tasks launched since then in one slot. A relaunch does not move it, because
// relaunches may be endless.
func (w *world) deadline() time.Duration {
	return stormTime + recoveryTime + time.Duration(len(w.book.launchedSinceCalm))*w.attemptTime
}
