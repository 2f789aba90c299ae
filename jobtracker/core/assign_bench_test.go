package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// fleet is a leader with many trackers and jobs. Maps take seeded times. It allocates little
// memory, so that benchmarks measure the core.
type fleet struct {
	holdLog bool // keep proposals in held
	held    []Propose

	tb         testing.TB
	core       *Core
	rnd        *rand.Rand
	now        time.Duration
	index      uint64
	hosts      []string // by tracker
	racks      []string
	inputRacks int // one in so many racks has input of a given job

	running   []runningMap // a heap by end
	report    wire.Report
	result    wire.Result
	output    wire.MapOutput
	seq       int
	launched  int
	levels    [wire.Remote + 1]int // launched maps by locality level
	deferred  int                  // sum of the deferred jobs at every deferredEvery-th Step
	steps     []time.Duration      // times of Steps after newFleet
	measuring bool
}

const (
	fleetSlots = 8
	fleetRack  = 40
	fleetBlock = 128 << 20

	deferredEvery = 256                  // Steps between checks of all jobs: more checks would distort the times
	fleetPace     = 5 * time.Microsecond // virtual time between two ends of maps: 200,000 a second
)

// fleetSize is the size of a fleet. maps counts per job; see fleet.inputRacks.
type fleetSize struct{ trackers, jobs, maps, inputRacks int }

func (s fleetSize) tasks() int { return s.jobs * s.maps }

func newFleet(tb testing.TB, size fleetSize, steps []time.Duration) *fleet {
	f := &fleet{tb: tb, rnd: rand.New(rand.NewPCG(1, uint64(size.trackers))), inputRacks: size.inputRacks, steps: steps}
	f.core = New(Config{ID: "jt", Lease: 24 * time.Hour, Scheduling: wire.Scheduling{Scheduler: "fair", Delay: "dynamic"}})
	f.step(Elected{Term: 1, Wall: 1})
	for i := range size.trackers {
		if i%fleetRack == 0 {
			f.racks = append(f.racks, fmt.Sprintf("/r%d", len(f.racks)))
		}
		f.hosts = append(f.hosts, fmt.Sprintf("t%05d", i))
		f.step(FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{
			Version: wire.Version, Tracker: f.hosts[i], Process: 1, Host: f.hosts[i], Addr: f.hosts[i] + ":1",
			MapSlots: fleetSlots, ReduceSlots: 2, Rack: f.racks[i/fleetRack],
		}})
		f.step(FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
	}
	for i := range size.jobs {
		f.step(Submit{Submission: &wire.Submission{
			Key: fmt.Sprint(i), Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: fmt.Sprint(i), Reduces: 1}}},
		}})
		for a := range f.core.leader.jobs[i+1].attempts.all() {
			f.step(FromTracker{Stream: a.tracker.contact.stream, Message: &wire.Report{
				Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{Splits: &wire.SplitsDone{Maps: size.maps}},
			}})
		}
	}
	return f
}

func (f *fleet) step(ev Event) {
	if !f.measuring {
		f.carryOutAll(f.core.Step(f.now, ev))
		return
	}
	begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	commands := f.core.Step(f.now, ev)
	f.steps = append(f.steps, cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-begin)
	if len(f.steps)%deferredEvery == 0 {
		for _, j := range f.core.leader.order {
			if _, deferred := j.assign.Deferred(); deferred {
				f.deferred++
			}
		}
	}
	f.carryOutAll(commands)
}

// cpuTime is the processor time of the thread or the process. Wall time would include other
// programs.
func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// cpuTimeCost is the processor time of one call of cpuTime.
func cpuTimeCost() time.Duration {
	all := make([]time.Duration, 1000)
	for i := range all {
		begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
		all[i] = cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - begin
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (f *fleet) carryOutAll(commands []Command) {
	for _, c := range commands {
		f.carryOut(c)
	}
}

func (f *fleet) carryOut(c Command) {
	switch c := c.(type) {
	case Propose:
		if f.holdLog {
			f.held = append(f.held, c)
			return
		}
		f.index++
		f.step(Entry{Index: f.index, Term: 1, Data: c.Data})
	case LoadSplits:
		f.step(SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Splits: f.splits(c.Maps)})
	case Allocate:
		policy, err := menu.Policy(c.Policy)
		if err != nil {
			f.tb.Fatal(err)
		}
		plan, err := policy.Plan(c.Snapshot)
		f.step(Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Plan: plan, Err: err})
	case Send:
		if m, ok := c.Message.(*wire.Launch); ok && m.Attempt.Task.Kind == wire.Map {
			f.launch(c.Stream, m.Attempt)
		}
	case Halt:
		f.tb.Fatal(c.Err)
	}
}

// splits returns splits with three replicas each, two of them in one rack, as in HDFS.
func (f *fleet) splits(n int) []Split {
	splits := make([]Split, n)
	racks := f.rnd.Perm(len(f.racks))[:(len(f.racks)+f.inputRacks-1)/f.inputRacks]
	for m := range splits {
		pickRack := func() (rack, size int) {
			rack = racks[f.rnd.IntN(len(racks))] * fleetRack
			return rack, min(fleetRack, len(f.hosts)-rack)
		}
		rack, size := pickRack()
		first := rack + f.rnd.IntN(size)
		rack, size = pickRack()
		second := f.rnd.IntN(size)
		s := &splits[m]
		s.Bytes = fleetBlock
		for _, i := range []int{first, rack + second, rack + (second+1)%size} {
			s.Hosts, s.Racks = append(s.Hosts, f.hosts[i]), append(s.Racks, f.racks[i/fleetRack])
		}
	}
	return splits
}

// runningMap is a map that runs, and when it ends.
type runningMap struct {
	at     time.Duration
	seq    int
	took   time.Duration
	stream Stream
	id     wire.AttemptID
	level  wire.Level
}

func (e *runningMap) compare(other *runningMap) int {
	return cmp.Or(cmp.Compare(e.at, other.at), cmp.Compare(e.seq, other.seq))
}

func (f *fleet) launch(stream Stream, id wire.AttemptID) {
	j := f.core.leader.jobs[id.Task.Job.N]
	e := runningMap{seq: f.seq, stream: stream, id: id, level: j.attempt(id).level}
	e.took = time.Duration((0.5 + f.rnd.Float64()) * float64(fleetPace) * float64(len(f.hosts)*fleetSlots))
	e.at = f.now + e.took
	if e.level > wire.NodeLocal {
		e.at += e.took / 4
	}
	f.seq++
	f.launched++
	f.levels[e.level]++
	f.running = append(f.running, e)
	for i := len(f.running) - 1; i > 0 && f.running[i].compare(&f.running[(i-1)/2]) < 0; i = (i - 1) / 2 {
		f.running[i], f.running[(i-1)/2] = f.running[(i-1)/2], f.running[i]
	}
}

// next removes the map that ends first.
func (f *fleet) next() runningMap {
	q, first := f.running, f.running[0]
	last := len(q) - 1
	q[0], q = q[last], q[:last]
	for i := 0; ; {
		earliest := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q[child].compare(&q[earliest]) < 0 {
				earliest = child
			}
		}
		if earliest == i {
			break
		}
		q[i], q[earliest] = q[earliest], q[i]
		i = earliest
	}
	f.running = q
	return first
}

// endNext ends the next map. Before that it wakes the core whenever it asks for that.
func (f *fleet) endNext() bool {
	if len(f.running) == 0 {
		return false
	}
	e := f.next()
	for {
		at, ok := f.core.Wake()
		if !ok || at > e.at {
			break
		}
		f.now = max(f.now, at)
		f.step(Tick{})
		checkWake(f.core, f.now, f.tb.Fatalf)
	}
	f.now = max(f.now, e.at)
	f.output = wire.MapOutput{Digest: 1, Bytes: 1 << 20}
	f.result = wire.Result{Took: e.took, Bytes: fleetBlock, Output: &f.output}
	read := wire.Reading{Bytes: fleetBlock, Took: e.took / 4}
	if e.level > wire.NodeLocal {
		read.Took = e.took / 2
	}
	*f.result.Reads.At(e.level) = read
	f.report = wire.Report{Attempt: e.id, State: wire.AttemptSucceeded, Result: &f.result}
	f.step(FromTracker{Stream: e.stream, Message: &f.report})
	return true
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkAssign runs a million maps of 200 jobs on a large cluster under the dynamic delay
// rule. Splits have three replicas. An op is the first nine tenths of the maps: the last tenth
// leaves no choice.
//
// Spread: input is on all racks. At first every slot is local for some map of every job, and
// later a few jobs are deferred. Skewed: the input of each job is in a fortieth of the racks.
// Most jobs are deferred, some trackers have no local maps left, and many maps run remotely.
//
// It reports maps per second of processor time, which excludes other programs:
//
//	core   Steps and all other threads, which run the garbage collector
//	step   Steps alone, with their share of the garbage collector
//	all    the process, with the simulated clients and trackers and the policy
func BenchmarkAssign(b *testing.B) {
	for _, size := range []fleetSize{
		{500, 200, 500, 1}, {5000, 200, 5000, 1}, {10000, 200, 5000, 1},
		{500, 200, 500, 40}, {5000, 200, 5000, 40}, {10000, 200, 5000, 40},
	} {
		name := fmt.Sprintf("spread/trackers=%d/tasks=%d", size.trackers, size.tasks())
		if size.inputRacks > 1 {
			name = "skewed" + strings.TrimPrefix(name, "spread")
		}
		b.Run(name, func(b *testing.B) { benchmarkFleet(b, size) })
	}
}

func benchmarkFleet(b *testing.B, size fleetSize) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clockCost := cpuTimeCost()
	for b.Loop() {
		b.StopTimer()
		steps := make([]time.Duration, 0, 3*size.tasks())
		before := heapBytes()
		f := newFleet(b, size, steps)
		built := heapBytes() - before
		f.launched, f.levels, f.measuring = 0, [wire.Remote + 1]int{}, true
		process, thread := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID), cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
		b.StartTimer()
		for f.launched < size.tasks()*9/10 && f.endNext() {
		}
		b.StopTimer()
		process, thread = cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)-process, cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-thread
		inSteps := sum(f.steps) - time.Duration(len(f.steps))*clockCost
		f.reportMetrics(b, map[string]time.Duration{"core": inSteps + process - thread, "step": inSteps, "all": process})
		b.ReportMetric(float64(built)/float64(size.tasks()), "B/task")
		b.ReportMetric(float64(heapBytes()-before)/float64(size.tasks()), "B/task-late")
		runtime.KeepAlive(f)
		b.StartTimer()
	}
}

// reportMetrics reports maps per second of each time, and more.
func (f *fleet) reportMetrics(b *testing.B, times map[string]time.Duration) {
	for name, took := range times {
		b.ReportMetric(float64(f.launched)/took.Seconds(), name+"/s")
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(f.launched) }
	b.ReportMetric(percent(f.levels[wire.NodeLocal]), "%node")
	b.ReportMetric(percent(f.levels[wire.RackLocal]), "%rack")
	b.ReportMetric(float64(f.deferred)/float64(len(f.steps)/deferredEvery), "deferred")
	slices.Sort(f.steps)
	micros := func(quantile float64) float64 {
		return float64(f.steps[int(quantile*float64(len(f.steps)-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(micros(0.5), "p50-µs")
	b.ReportMetric(micros(0.99), "p99-µs")
	b.ReportMetric(micros(0.999), "p99.9-µs")
	b.ReportMetric(micros(1)/1000, "max-ms")
	b.ReportMetric(float64(len(f.steps))/float64(f.launched), "steps/op")
}
