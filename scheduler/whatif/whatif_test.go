package whatif

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

func id(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// mapsOf is a job of maps that take some seconds each.
func mapsOf(n, maps int, seconds float64) Job {
	return Job{
		ID: id(n), User: "ann", Pool: wire.DefaultPool, Arrived: time.Duration(n), Begun: true, Goal: scheduler.Goal{Submitted: time.Duration(n)},
		Phases: [2]Phase{{Tasks: maps, Left: maps, Seconds: seconds, Fits: math.MaxInt32}, {Fits: math.MaxInt32}},
	}
}

// with adds reduces and a shuffle.
func (j Job) with(reduces int, seconds, bytes float64) Job {
	j.Phases[Reduce] = Phase{Tasks: reduces, Left: reduces, Seconds: seconds, Fits: math.MaxInt32}
	j.Shuffle = Shuffle{Left: bytes, Whole: bytes}
	return j
}

// on is a state with trackers of one map slot and one reduce slot.
func on(trackers int, jobs ...Job) *State {
	s := &State{Usual: [2]float64{1, 1}, Jobs: jobs, Metric: scheduler.Metric{Penalty: scheduler.Response}}
	for i := range trackers {
		s.Trackers = append(s.Trackers, Tracker{Name: string(rune('a' + i)), Slots: [2]int{1, 1}})
	}
	for _, j := range jobs {
		s.Flows = append(s.Flows, scheduler.Flow{First: j.ID.N})
	}
	return s
}

func predict(t testing.TB, s *State, name string) *Prediction {
	t.Helper()
	policy, err := menu.Policy(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(context.Background(), s, menu.NeedsOf(name), Plans(policy))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// TestPredict has mixes with ends that one can compute by hand.
func TestPredict(t *testing.T) {
	limited := func(p pool.Pool) *pool.Table { return &pool.Table{Pools: []pool.Pool{p}} }
	for _, c := range []struct {
		name, scheduler string
		state           *State
		change          func(s *State)
		want            []float64
	}{
		{"one job, in rounds", "fifo", on(2, mapsOf(1, 5, 10)), nil, []float64{30}},
		{"the usual time of a task that was not measured", "fifo", on(1, mapsOf(1, 3, 0)), nil, []float64{3}},
		{"two jobs, in order", "fifo", on(2, mapsOf(1, 4, 10), mapsOf(2, 2, 5)), nil, []float64{20, 25}},
		{"two jobs, one slot each", "fair", on(2, mapsOf(1, 4, 10), mapsOf(2, 2, 5)), nil, []float64{30, 10}},
		{"the shorter one first", "srpt", on(1, mapsOf(1, 4, 10), mapsOf(2, 2, 5)), nil, []float64{50, 10}},
		{"the one that is important first", "fifo", on(1, mapsOf(1, 4, 10), mapsOf(2, 2, 5)), func(s *State) { s.Jobs[1].Priority = 1 }, []float64{50, 10}},
		{"a running task keeps its slot", "srpt", on(1, mapsOf(1, 4, 10), mapsOf(2, 2, 5)), func(s *State) {
			s.Jobs[0].Phases[Map].Running = []Running{{Tracker: 0, Rest: 7}}
		}, []float64{47, 17}},
		{"a running task on a lost tracker keeps no slot", "fifo", on(1, mapsOf(1, 2, 10)), func(s *State) {
			s.Jobs[0].Phases[Map].Running = []Running{{Tracker: -1, Rest: 30}}
		}, []float64{30}},
		{"a running task of another job keeps its slot", "fifo", on(1, mapsOf(1, 2, 10)), func(s *State) { s.Others[Map] = []Running{{Tracker: 0, Rest: 4}} }, []float64{24}},
		{"the close of jobs", "fifo", on(1, mapsOf(1, 1, 10), mapsOf(2, 1, 10)), func(s *State) { s.Close = 2 }, []float64{12, 22}},
		{"a job that commits", "fifo", on(1, mapsOf(1, 0, 10), mapsOf(2, 1, 10)), func(s *State) { s.Jobs[0].Closing = 3 }, []float64{3, 10}},
		{"reduces after maps", "fifo", on(1, mapsOf(1, 2, 10).with(2, 5, 0)), nil, []float64{30}},
		{"reduces after the shuffle, which goes on beside maps", "fifo", on(1, mapsOf(1, 2, 10).with(2, 5, 200)), func(s *State) { s.Bandwidth = 10 }, []float64{20 + 10 + 10}},
		{"shuffles share the bandwidth", "fifo", on(2, mapsOf(1, 1, 10).with(1, 5, 100), mapsOf(2, 1, 10).with(1, 5, 100)), func(s *State) { s.Bandwidth = 10 }, []float64{35, 35}},
		{"shuffles in the order of the plan", "srpt", on(2, mapsOf(1, 1, 10).with(1, 5, 100), mapsOf(2, 1, 10).with(1, 5, 50)), func(s *State) { s.Bandwidth = 10 }, []float64{30, 20}},
		{"a flow", "fifo", on(2, mapsOf(1, 2, 10), mapsOf(2, 2, 5)), func(s *State) {
			b := &s.Jobs[1]
			b.Begun, b.After, b.Lag, b.Flow, s.Jobs[0].Flow, s.Close = false, []wire.JobID{id(1)}, 3, 1, 1, 1
		}, []float64{11, 11 + 3 + 5 + 1}},
		{"a pool keeps its maximum", "fifo", on(3, mapsOf(1, 3, 10), mapsOf(2, 3, 10)), func(s *State) {
			s.Jobs[0].Pool, s.Pools = "p", limited(pool.Pool{Name: "p", Max: [2]int{1, pool.Unlimited}, MaxRunning: pool.Unlimited})
		}, []float64{30, 20}},
		{"a pool runs one job at a time", "fair", on(2, mapsOf(1, 2, 10), mapsOf(2, 2, 10)), func(s *State) {
			s.Jobs[0].Pool, s.Jobs[1].Pool = "p", "p"
			s.Pools = limited(pool.Pool{Name: "p", Max: [2]int{pool.Unlimited, pool.Unlimited}, MaxRunning: 1})
		}, []float64{10, 20}},
		{"few slots have room", "fifo", on(3, mapsOf(1, 3, 10)), func(s *State) { s.Jobs[0].Phases[Map].Fits = 1 }, []float64{30}},
		{"a slow tracker gets less", "hmhs", on(2, mapsOf(1, 3, 10)), func(s *State) {
			s.Measured[Map] = []scheduler.Measured{{Job: id(9), Tracker: "a", Tasks: 100, Seconds: 1000}, {Job: id(9), Tracker: "b", Tasks: 100, Seconds: 4000}}
			s.Jobs[0].Phases[Map].Seconds = 25
		}, []float64{30}},
	} {
		if c.change != nil {
			c.change(c.state)
		}
		got := predict(t, c.state, c.scheduler).Ends
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-6 {
				t.Errorf("%s: ends %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

// TestNeverEnds: without slots the prediction fails.
func TestNeverEnds(t *testing.T) {
	for _, name := range menu.Names() {
		policy, _ := menu.Policy(name)
		if _, err := Predict(context.Background(), on(0, mapsOf(1, 1, 1)), menu.NeedsOf(name), Plans(policy)); !errors.Is(err, ErrNeverEnds) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKept: while the planner keeps its first plan, jobs still get free slots, also those that are not in it.
func TestKept(t *testing.T) {
	s := on(1, mapsOf(1, 2, 10), mapsOf(2, 2, 5), mapsOf(3, 1, 1))
	s.Jobs[2].Begun, s.Jobs[2].After = false, []wire.JobID{id(2)}
	asked := 0
	p, err := Predict(context.Background(), s, menu.Needs{}, func(scheduler.Snapshot, float64) (scheduler.Plan, bool, error) {
		asked++
		return scheduler.Plan{Targets: []scheduler.Target{{Job: id(2), Slots: 1}, {Job: id(1)}}}, asked > 1, nil
	})
	if err != nil || p.Ends[1] != 10 || p.Ends[0] != 30 || p.Ends[2] != 31 || p.Plans != 1 || p.Kept != asked-1 {
		t.Errorf("%+v after %d questions, %v", p, asked, err)
	}
	failed := errors.New("no")
	if _, err := Predict(context.Background(), s, menu.Needs{}, func(scheduler.Snapshot, float64) (scheduler.Plan, bool, error) {
		return scheduler.Plan{}, false, failed
	}); !errors.Is(err, failed) {
		t.Errorf("the planner's error is %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(failed)
	if _, err := Predict(ctx, s, menu.Needs{}, nil); !errors.Is(err, failed) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// TestTimes: the times of tasks have the mean and the deviation of their phase, each place in the distribution once.
func TestTimes(t *testing.T) {
	for _, all := range []int{1, 2, 3, 10, 100, 1000} {
		w := &work{seconds: 10, all: all}
		seen, sum, squares := make(map[float64]bool), 0.0, 0.0
		for range all {
			x := w.time(0.3)
			w.launched++
			seen[x], sum, squares = true, sum+x, squares+x*x
		}
		mean := sum / float64(all)
		deviation := math.Sqrt(squares/float64(all)-mean*mean) / mean
		if len(seen) != all || math.Abs(mean-10) > 0.5 || all >= 100 && math.Abs(deviation-0.3) > 0.03 {
			t.Errorf("%d tasks: %d times with the mean %.2f and the deviation %.2f", all, len(seen), mean, deviation)
		}
	}
}

// TestJoined: joined tasks make about the same schedule.
func TestJoined(t *testing.T) {
	s := on(10, mapsOf(1, 4*maxEvents, 10), mapsOf(2, 100, 10))
	ends := predict(t, s, "fair").Ends
	whole := float64(4*maxEvents+100) * 10 / 10
	if math.Abs(ends[0]-whole) > 0.001*whole || math.Abs(ends[1]-200) > 50 {
		t.Errorf("ends %v, want about [%v 200]", ends, whole)
	}
}

// TestBounds: under every scheduler each job ends, not before its longest path, and all of them not before the work is done.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := on(rapid.IntRange(1, 4).Draw(t, "trackers"))
		s.Close, s.Bandwidth = float64(rapid.IntRange(0, 2).Draw(t, "close")), float64(rapid.IntRange(0, 3).Draw(t, "bandwidth"))
		least, work := []float64{}, [2]float64{}
		for n := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			maps, reduces := rapid.IntRange(1, 8).Draw(t, "maps"), rapid.IntRange(0, 3).Draw(t, "reduces")
			seconds := float64(rapid.IntRange(1, 9).Draw(t, "seconds"))
			bytes := float64(rapid.IntRange(0, 20).Draw(t, "bytes"))
			if reduces == 0 {
				bytes = 0
			}
			j := mapsOf(n+1, maps, seconds).with(reduces, 2, bytes)
			j.Priority = rapid.IntRange(-1, 1).Draw(t, "priority")
			path := s.Close + seconds
			if reduces > 0 {
				path += 2
			}
			if n > 0 && rapid.Bool().Draw(t, "waits") {
				j.Begun, j.After, j.Flow, s.Jobs[n-1].Flow = false, []wire.JobID{id(n)}, max(s.Jobs[n-1].Flow, n), max(s.Jobs[n-1].Flow, n)
				path += least[n-1]
			}
			s.Jobs, least = append(s.Jobs, j), append(least, path)
			work[Map] += float64(maps) * seconds
			work[Reduce] += float64(reduces) * 2
			s.Flows = append(s.Flows, scheduler.Flow{First: n + 1, Alone: 1})
		}
		for _, name := range menu.Names() {
			policy, _ := menu.Policy(name)
			p, err := Predict(context.Background(), s, menu.NeedsOf(name), checked(t, policy))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			last := 0.0
			for i, end := range p.Ends {
				if end < least[i]-1e-6 {
					t.Fatalf("%s: job %d ends after %v, which takes at least %v", name, i+1, end, least[i])
				}
				last = max(last, end)
			}
			if slots := float64(len(s.Trackers)); last < max(work[Map], work[Reduce])/slots-1e-6 {
				t.Fatalf("%s: all ends after %v, with %v of work", name, last, work)
			}
			x := s.Summarize(p.Ends)
			if len(x.Values) != len(scheduler.Metrics()) || math.Abs(x.LastEnd-last) > 1e-6 {
				t.Fatalf("%s: %+v", name, x)
			}
		}
	})
}

// checked is a planner that checks snapshots and plans.
func checked(t *rapid.T, policy scheduler.Policy) Planner {
	plans := Plans(policy)
	return func(s scheduler.Snapshot, ended float64) (scheduler.Plan, bool, error) {
		if _, err := s.Normal(); err != nil {
			t.Fatalf("the snapshot is invalid: %v", err)
		}
		if ended < 0 || ended > 1 {
			t.Fatalf("%v of the phases have ended", ended)
		}
		plan, keep, err := plans(s, ended)
		if err == nil {
			err = plan.Validate(s)
		}
		return plan, keep, err
	}
}

// TestSummarize: a flow counts once, with its last job.
func TestSummarize(t *testing.T) {
	s := on(1, mapsOf(1, 1, 1), mapsOf(2, 1, 1), mapsOf(3, 1, 1))
	s.Now = 10 * time.Second
	for i := range s.Jobs {
		s.Jobs[i].Goal = scheduler.Goal{Submitted: 0, Deadline: 25 * time.Second}
	}
	s.Jobs[1].Flow, s.Jobs[2].Flow = 2, 2
	s.Flows = []scheduler.Flow{{First: 1, Alone: 5}, {First: 2, Alone: 10}}
	x := s.Summarize([]float64{10, 5, 30})
	if x.Submissions != 2 || x.MeanResponse != 30 || x.MeanStretch != 4 || x.LastEnd != 30 || x.Late != 1 {
		t.Errorf("%+v", x)
	}
	want := map[string]float64{"sum-response": 40, "max-response": 30, "sum-tardiness": 15, "max-lateness": 15, "sum-tardy": 1, "max-stretch": 4, "sum-stretch": 5}
	for _, v := range x.Values {
		if w, ok := want[v.Metric.String()]; ok && math.Abs(v.Value-w) > 1e-9 {
			t.Errorf("%v is %v, want %v", v.Metric, v.Value, w)
		}
	}
}
