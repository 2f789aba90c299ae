package core

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// fleet is a leader with many trackers and jobs, whose maps take seeded times.
type fleet struct {
	tb       testing.TB
	core     *Core
	rnd      *rand.Rand
	now      time.Duration
	index    uint64
	running  timeline // ends of maps
	seq      int
	launched int
	near     int
	steps    []time.Duration // what each took, but for those of the building
	measures bool
}

const (
	fleetSlots = 8
	fleetBlock = 128 << 20
	fleetPace  = 5 * time.Microsecond // of virtual time from one end of a map to the next: 200,000 a second
)

func newFleet(tb testing.TB, trackers, jobs, maps int) *fleet {
	f := &fleet{tb: tb, rnd: rand.New(rand.NewPCG(1, uint64(trackers)))}
	f.core = New(Config{ID: "jt", Lease: 24 * time.Hour, Scheduling: wire.Scheduling{Scheduler: "fair", Delay: "dynamic"}})
	f.step(Elected{Term: 1, Wall: 1})
	for i := range trackers {
		name := fmt.Sprintf("t%05d", i)
		f.step(FromTracker{Stream(i + 1), &wire.Hello{
			Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name + ":1", MapSlots: fleetSlots, ReduceSlots: 2,
			Rack: fmt.Sprintf("/r%d", i/40),
		}})
		f.step(FromTracker{Stream(i + 1), &wire.Inventory{}})
	}
	for i := range jobs {
		f.step(Submit{Submission: &wire.Submission{
			Key: fmt.Sprint(i), Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: fmt.Sprint(i), Reduces: 1}}},
		}})
		for _, a := range f.core.live.jobs[i+1].attempts {
			f.step(FromTracker{a.tracker.stream, &wire.Report{
				Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{Splits: &wire.SplitsDone{Maps: maps}},
			}})
		}
	}
	return f
}

func (f *fleet) step(ev Event) {
	if !f.measures {
		f.carry(f.core.Step(f.now, ev))
		return
	}
	begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	commands := f.core.Step(f.now, ev)
	f.steps = append(f.steps, cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-begin)
	f.carry(commands)
}

// cpuTime is what the thread or the process has had of processors: the machine may
// have other work.
func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func (f *fleet) carry(commands []Command) {
	for _, c := range commands {
		f.carryOut(c)
	}
}

func (f *fleet) carryOut(c Command) {
	switch c := c.(type) {
	case Propose:
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

// splits have three replicas each: two in one rack, as HDFS places them.
func (f *fleet) splits(n int) []Split {
	splits := make([]Split, n)
	trackers := len(f.core.live.byIndex)
	for m := range splits {
		first := f.rnd.IntN(trackers)
		rack := f.rnd.IntN(trackers) / 40 * 40
		second := rack + f.rnd.IntN(min(40, trackers-rack))
		third := rack + (second-rack+1)%min(40, trackers-rack)
		s := &splits[m]
		s.Bytes = fleetBlock
		for _, i := range []int{first, second, third} {
			s.Hosts = append(s.Hosts, fmt.Sprintf("t%05d", i))
			s.Racks = append(s.Racks, fmt.Sprintf("/r%d", i/40))
		}
	}
	return splits
}

func (f *fleet) launch(stream Stream, id wire.AttemptID) {
	a := f.core.live.jobs[id.Task.Job.N].attempt(id)
	slots := len(f.core.live.byIndex) * fleetSlots
	took := time.Duration((0.5 + f.rnd.Float64()) * float64(fleetPace) * float64(slots))
	r := &wire.Result{Took: took, Bytes: fleetBlock, Output: &wire.MapOutput{Digest: 1, Bytes: 1 << 20}}
	read := wire.Reading{Bytes: fleetBlock, Took: took / 4}
	if a.level > wire.NodeLocal {
		read.Took = took / 2
		took += took / 4
		r.Reads.Remote = read
	} else {
		f.near++
		r.Reads.Node = read
	}
	f.seq++
	f.launched++
	f.running.push(moment{at: f.now + took, seq: f.seq, do: func() {
		f.step(FromTracker{stream, &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: r}})
	}})
}

// end lets the map end that ends next, and what waits for a time until then.
func (f *fleet) end() bool {
	if len(f.running) == 0 {
		return false
	}
	m := f.running.pop()
	for {
		at, ok := f.core.Wake()
		if !ok || at > m.at {
			break
		}
		f.now = max(f.now, at)
		f.step(Tick{})
	}
	f.now = max(f.now, m.at)
	m.do()
	return true
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAssign: a million maps of 200 jobs with three replicas each go through the
// slots of a large cluster, by the dynamic delay rule. An op is a map that ends. What is
// reported is processor time: of everything for the assignments, clients, trackers and
// garbage included, and of single Steps.
func BenchmarkAssign(b *testing.B) {
	for _, size := range []struct{ trackers, jobs, maps int }{{500, 200, 500}, {5000, 200, 5000}, {10000, 200, 5000}} {
		b.Run(fmt.Sprintf("trackers=%d/tasks=%d", size.trackers, size.jobs*size.maps), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var all []time.Duration
			var used, began time.Duration
			launched, near, bytes := 0, 0, uint64(0)
			var f *fleet
			for b.Loop() {
				if f == nil || !f.end() || f.launched > size.jobs*size.maps*9/10 {
					b.StopTimer()
					if f != nil {
						used += cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) - began
					}
					if f != nil {
						all, launched, near = append(all, f.steps...), launched+f.launched, near+f.near
						f = nil
					}
					before := heapBytes()
					f = newFleet(b, size.trackers, size.jobs, size.maps)
					bytes = heapBytes() - before
					f.launched, f.near, f.measures = 0, 0, true
					began = cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)
					b.StartTimer()
				}
			}
			all, launched, near = append(all, f.steps...), launched+f.launched, near+f.near
			used += cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) - began
			slices.Sort(all)
			b.ReportMetric(float64(launched)/used.Seconds(), "assignments/cpu-s")
			b.ReportMetric(float64(launched)/sum(all).Seconds(), "assignments/step-s")
			b.ReportMetric(float64(near)/float64(launched)*100, "%near")
			b.ReportMetric(float64(all[len(all)*50/100].Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds())/1000, "p99-µs")
			b.ReportMetric(float64(all[len(all)*999/1000].Nanoseconds())/1000, "p99.9-µs")
			b.ReportMetric(float64(all[len(all)-1].Nanoseconds())/1e6, "max-ms")
			b.ReportMetric(float64(bytes)/float64(size.jobs*size.maps), "B/task")
		})
	}
}
