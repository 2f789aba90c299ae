package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	rooms         *rand.Rand // draws what trackers offer and jobs request
	offersRoom    bool       // trackers offer memory and cores
	now           time.Duration
	seq           int
	events        heap.Heap[event]
	stepping      stepping
	shape         shape
	calm          bool            // the storm is over
	lasting       bool            // faults last, and the workload is undisturbed by its users
	rotating      bool            // the same, and faults rotate
	lastSubmitted time.Duration   // when the last client submits its jobs
	uncapped      bool            // pools have no maximum of slots, see Fault.slows
	split         map[string]bool // task trackers with the fault SplitTrackers
	harmless      bool            // no fault of the run can fail an attempt for good
	trace         []string
	rates         rates
	refused       map[Kind]bool   // effects that fail for good
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
	badRecords    bool // Options.BadRecords
	mapFiles      bool // Options.MapFiles
	skips         int  // Result.Skips
	mapsAgain     int  // Result.MapsAgain
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

// stepping counts and measures the events given to cores.
type stepping struct {
	steps, max int    // max is more than the run needs
	factsEvery int    // entries between comparisons of facts, which take long in a large cluster
	meter      *Meter // nil: nothing is measured
}

// shape is how a cluster is made.
type shape struct {
	slots        [2]int // of each tracker; 0: drawn
	mergeFactor  int    // of trackers; 0: the default
	administered bool   // trackers are drained, and pools change
	limits       core.Limits
	calmFacts    bool // without faults, few entries are checked for equal facts
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
	w := emptyWorld(r)
	plan, changes, shapes := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 4)), rand.New(rand.NewPCG(seed, 5))
	w.shuffles, w.rooms = rand.New(rand.NewPCG(seed, 6)), rand.New(rand.NewPCG(seed, 7))
	w.scheduling = drawScheduling(seed, changes)
	w.shape.administered, w.shape.mergeFactor = true, 2
	w.lasting, w.rotating = r.lasting != nil, r.Options.Rotating
	w.offersRoom = !w.lasting && w.rooms.IntN(2) == 0
	w.uncapped = w.lasting && slices.ContainsFunc(r.Faults, Fault.slows)
	w.drawPools(changes, rand.New(rand.NewPCG(seed, 10)))
	trackers := 2 + plan.IntN(taskTrackers-1)
	var absent []string
	if w.lasting {
		trackers = r.lasting.trackers
		if r.lasting.absent {
			absent = r.lasting.others
		}
	} else {
		w.changeScheduling(changes, changes.IntN(3))
	}
	w.addNodes(trackers, absent...)
	w.callTime = time.Millisecond + time.Duration(plan.Int64N(int64(20*time.Millisecond)))
	w.verifyTime = 10*time.Millisecond + time.Duration(plan.Int64N(int64(2*time.Second)))
	w.keepLogs = plan.IntN(2) == 0
	w.attemptTime = 100*time.Millisecond + time.Duration(plan.Int64N(int64(3*time.Second)))
	ends := rand.New(rand.NewPCG(seed, 14))
	clients := 1 + plan.IntN(5)
	if w.rotating {
		clients = rotatingClients
	}
	for i := range clients {
		w.addClient(plan, changes, shapes, ends, i)
	}
	return w
}

// play plays a run and stores the outcome in r.
func play(r *Result) {
	w := newWorld(r)
	defer w.finish(r)
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

// finish ends all processes and stores the outcome of a run. It is deferred: a violation is a
// panic.
func (w *world) finish(r *Result) {
	if v := recover(); v != nil {
		text, ok := v.(violation)
		if !ok {
			text = violation(fmt.Sprintf("panic: %v\n%s", v, stack()))
		}
		r.Violation = string(text)
	}
	for _, t := range w.tts {
		t.killProcesses()
	}
	r.Trace, r.Elapsed, r.Steps, r.Leaders, r.Skips, r.MapsAgain = w.trace, w.now, w.stepping.steps, len(w.book.leaders), w.skips, w.mapsAgain
	r.Digest = w.digest.value()
	r.Lost = w.book.losses
	r.Silences = w.book.silences
	r.Rejoined = w.book.rejoined
	for _, t := range w.tts {
		r.Dials += t.dials
	}
	for _, n := range w.jts {
		r.Waited, r.Busy = max(r.Waited, n.load.waited), max(r.Busy, n.load.busy)
	}
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
