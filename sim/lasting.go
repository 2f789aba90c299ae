package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/wire"
)

// Faults that last are on at most half of the task trackers. They end when all jobs have ended.
// Sick, SickMaps, SickReduces and BadDisk may last, too.
const (
	SickJob       Kind = "fail every attempt at one job of"
	CutTrackers   Kind = "cut from the other task trackers"
	SplitTrackers Kind = "split from the rest" // reaches only task trackers with the same fault
	RefuseFetches Kind = "answer no fetch from"
	StallFetches  Kind = "stall every fetch from"
	SlowProcessor Kind = "slow the processor of"
	SlowDisk      Kind = "slow the disks of"
	SlowNetwork   Kind = "slow the network of"
	FullDisk      Kind = "fill a disk of"
	FullDisks     Kind = "fill all disks of"
	RefusedCalls  Kind = "refuse calls to the file system from"
	SlowCalls     Kind = "slow calls to the file system from"
)

// lastingKinds lists the kinds of faults that may last.
func lastingKinds() []Kind {
	return []Kind{
		Sick, SickMaps, SickReduces, SickJob, CutTrackers, SplitTrackers, RefuseFetches, StallFetches,
		SlowProcessor, SlowDisk, SlowNetwork, FullDisk, FullDisks, BadDisk, RefusedCalls, SlowCalls,
	}
}

const (
	lastingTime     = 1000 * time.Hour // longer than any run
	lastingTrackers = 10               // at most, in a run with such faults
)

// machine describes the lasting faults of a task tracker's machine.
type machine struct {
	sickJob                         int // number of the job; 0: none
	refusesFetches, stallsFetches   bool
	processor, disk, network, calls float64 // how many times slower; 0: not slower
	refusesCalls                    bool
	full                            map[string]bool // disks without space
}

// slowed returns a duration on a part that is so many times slower.
func slowed(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * max(factor, 1))
}

// slows reports whether tasks of a tracker with the fault take longer, and do not fail. Such runs have no
// pool with a maximum of slots: slow tasks that have all its slots leave none for second attempts,
// however many trackers are healthy. A maximum is a rule of users, which speculation keeps.
func (f Fault) slows() bool {
	return f.Kind == SlowProcessor || f.Kind == SlowDisk || f.Kind == SlowNetwork
}

// drawLasting draws the number of task trackers of a run, and the lasting faults of up to half
// of them. Either all begin with the run, or each some time later.
func drawLasting(seed uint64) (trackers int, faults []Fault) {
	rnd := rand.New(rand.NewPCG(seed, 8))
	trackers = 2 + rnd.IntN(lastingTrackers-1)
	kinds, later := lastingKinds(), rnd.IntN(2) == 0
	kind := kinds[seed%uint64(len(kinds))] // equal numbers of each
	for i, n := range rnd.Perm(trackers)[:1+rnd.IntN(trackers/2)] {
		if i > 0 && rnd.IntN(2) == 0 {
			kind = kinds[rnd.IntN(len(kinds))]
		}
		f := Fault{Kind: kind, Node: taskTrackerName(n), For: lastingTime}
		if later {
			f.At = time.Duration(rnd.Int64N(int64(stormTime / 2)))
		}
		switch kind {
		case SickJob:
			f.Job = 1 + rnd.IntN(3)
		case FullDisk, BadDisk:
			f.Disk = disks()[rnd.IntN(len(disks()))]
		case SlowNetwork:
			f.Factor = []float64{10, 100, 500}[rnd.IntN(3)] // of 1 Gbit/s; the last is 2 Mbit/s
		case SlowProcessor, SlowDisk, SlowCalls:
			f.Factor = []float64{10, 100}[rnd.IntN(2)]
		}
		faults = append(faults, f)
	}
	return trackers, faults
}

// strikeMachine begins a lasting fault.
func (t *taskTracker) strikeMachine(f Fault) {
	m := &t.machine
	switch f.Kind {
	case SickJob:
		m.sickJob = f.Job
	case RefuseFetches:
		m.refusesFetches = true
	case StallFetches:
		m.stallsFetches = true
	case SlowProcessor:
		m.processor = f.Factor
	case SlowDisk:
		m.disk = f.Factor
	case SlowNetwork:
		m.network, m.calls = f.Factor, f.Factor
	case SlowCalls:
		m.calls = f.Factor
	case RefusedCalls:
		m.refusesCalls = true
	case FullDisk:
		m.full = map[string]bool{f.Disk: true}
	case FullDisks:
		m.full = make(map[string]bool)
		for _, d := range disks() {
			m.full[d] = true
		}
	}
}

// hasSpace reports whether a file can be written.
func (t *taskTracker) hasSpace(path string) bool { return !t.machine.full[diskOf(path)] }

// fixedTime is the duration of a task's attempts in runs with lasting faults: equal tasks take
// equal time in both runs of a comparison.
func (w *world) fixedTime(id wire.TaskID) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, id.Job.N, id.Kind, id.N)
	return w.attemptTime/4 + time.Duration(h.Sum64()%uint64(w.attemptTime*3/4))
}

// longestBackOff is the longest time for which a failed task waits before its next attempt.
const longestBackOff = 10 * time.Second

// lastingBound is the time by which all jobs must have ended, if the healthy trackers alone take
// the given time.
func lastingBound(healthy time.Duration) time.Duration { return 2*healthy + 3*lease + longestBackOff }

// lasting is the part of a run that only comparisons with lasting faults have.
type lasting struct {
	trackers int
	others   []string      // task trackers that the run to compare with does not have
	absent   bool          // these never start: this is the run to compare with
	healthy  time.Duration // how long the run with the healthy trackers alone takes
}

// runLasting compares two runs of a seed's workload: with the healthy task trackers alone, and
// with all of them. It returns the second run. If faults rotate, half of the task trackers stand for
// the healthy ones.
func runLasting(o Options, draw func(seed uint64) (trackers int, faults []Fault)) *Result {
	trackers, faults := draw(o.Seed)
	r := newResult(o, faults)
	r.lasting = &lasting{trackers: trackers}
	if o.Rotating {
		for n := range trackers / 2 {
			r.lasting.others = append(r.lasting.others, taskTrackerName(n))
		}
	} else {
		for _, i := range r.Kept {
			r.lasting.others = append(r.lasting.others, faults[i].Node)
		}
	}
	alone := newResult(o, faults)
	alone.lasting = &lasting{trackers: trackers, others: r.lasting.others, absent: true}
	if play(alone); alone.Violation != "" {
		return alone
	}
	r.lasting.healthy = alone.Elapsed
	play(r)
	return r
}

// playLasting plays one run of such a comparison. Both play until all jobs have ended.
func (w *world) playLasting(r *Result) {
	x := r.lasting
	if x.absent {
		if end := 1000 * w.attemptTime * time.Duration(len(w.clients)); !w.run(w.allEnded, end) {
			w.fail("L1: the healthy task trackers alone have not ended all jobs after %v:%s", end, w.unfinished())
		}
		return
	}
	w.split = make(map[string]bool)
	for _, i := range r.Kept {
		w.schedule(r.Faults[i])
		w.split[r.Faults[i].Node] = r.Faults[i].Kind == SplitTrackers
	}
	w.harmless = true
	var from time.Duration
	if w.rotating {
		from = w.lastSubmitted
	}
	if end := from + lastingBound(x.healthy-from); !w.run(w.allEnded, end) {
		w.fail("L1: the healthy task trackers alone end all jobs in %v; with the others, not all have ended after %v:%s", x.healthy, end, w.unfinished())
	}
	w.endStorm()
	w.run(w.tidy, w.now+tidyTime)
	w.run(func() bool { return false }, w.now+5*time.Second)
	w.checkEnd()
}
