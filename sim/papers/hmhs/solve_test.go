package hmhs

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/hmhs/hmhstest"
)

// TestHeuristics checks H1 for every heuristic, and that a replay of its runs has the same ends.
func TestHeuristics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 6, 6, rapid.Bool().Draw(t, "whole"))
		for h := plainHMHS; h <= withSufferage; h++ {
			s, err := solve(b, h)
			if err != nil {
				t.Fatal(err)
			}
			checkDispatched(t, h, s.Maps, b.MapStages())
			checkDispatched(t, h, s.Reduces, b.ReduceStages())
			again, err := replay(b, s)
			if err != nil || !slices.Equal(again.Mapped, s.Mapped) || !slices.Equal(again.Ends, s.Ends) || again.Makespan != s.Makespan {
				t.Fatalf("%d: %+v, replayed %+v: %v", h, s, again, err)
			}
			checkReduces(t, h, b, s)
		}
	})
}

func checkDispatched(t *rapid.T, h heuristic, runs [][]hmhs.Run, stages []hmhs.Stage) {
	got := make([]int, len(stages))
	for _, machine := range runs {
		for _, r := range machine {
			got[r.Job] += r.Tasks
		}
	}
	for i, s := range stages {
		if got[i] != s.Tasks {
			t.Fatalf("heuristic %d dispatches %d of job %d's %d tasks", h, got[i], i, s.Tasks)
		}
	}
}

// checkReduces replays each machine's reduces, none before its maps have ended.
func checkReduces(t *rapid.T, h heuristic, b *hmhs.Batch, s *schedule) {
	ends := slices.Clone(s.Mapped)
	for m, runs := range s.Reduces {
		free := slices.Clone(b.Reduces[m].Free)
		for _, r := range runs {
			for range r.Tasks {
				k := slices.Index(free, slices.Min(free))
				free[k] = max(free[k], s.Mapped[r.Job]) + b.Jobs[r.Job].Reduce.Seconds(m)
				ends[r.Job] = max(ends[r.Job], free[k])
			}
		}
	}
	makespan := 0.0
	for i, end := range ends {
		makespan = max(makespan, end)
		if math.Abs(end-s.Ends[i]) > 1e-9*end {
			t.Fatalf("heuristic %d: job %d ends at %v, replayed at %v", h, i, s.Ends[i], end)
		}
	}
	if makespan != s.Makespan {
		t.Fatalf("heuristic %d: makespan %v, replayed %v", h, s.Makespan, makespan)
	}
}

// TestSufferage compares sufferage with a search for the two least completion times at each
// task.
func TestSufferage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 5, 5, rapid.Bool().Draw(t, "whole"))
		stages := b.MapStages()
		s, tasks := hmhstest.NewReference(b.Maps, len(stages)), hmhstest.Tasks(stages)
		for len(tasks) > 0 {
			task, machine, largest, done := 0, 0, -1.0, 0.0
			for at, job := range tasks {
				first, least, next := 0, math.Inf(1), math.Inf(1)
				for m := range b.Maps {
					c := s.Available(m) + stages[job].Seconds(m)
					if c < least {
						first, least, next = m, c, least
					} else {
						next = min(next, c)
					}
				}
				if next-least > largest {
					task, machine, largest, done = at, first, next-least, least
				}
			}
			s.Assign(machine, tasks[task], done)
			tasks = slices.Delete(tasks, task, task+1)
		}
		if got := sufferage(b.Maps, stages); !slices.EqualFunc(got, s.Runs, slices.Equal) {
			t.Fatalf("got %v, searched again %v", got, s.Runs)
		}
	})
}

// TestScenarios runs testdata/*.txt. Directives:
//
//	solve HEURISTIC maps=M reduces=R   schedules the jobs given, one a line as in
//	    "a 3x2 [1 0.5] 1x4 [1 1]": three maps of 2 seconds, and their factors by
//	    machine, one reduce of 4; prints each machine's tasks and the ends of jobs
//	refuse                             the same, for invalid jobs
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		datadriven.RunTest(t, path, run)
	}
}

var names = map[string]heuristic{"hmhs": plainHMHS, "reversed": reversed, "fifo": plainFIFO, "fifo-pri": fifoPri, "sufferage": withSufferage}

func run(t *testing.T, d *datadriven.TestData) string {
	var maps, reduces int
	d.ScanArgs(t, "maps", &maps)
	d.ScanArgs(t, "reduces", &reduces)
	b := &hmhs.Batch{Maps: free(maps), Reduces: free(reduces)}
	for line := range strings.Lines(d.Input) {
		b.Jobs = append(b.Jobs, job(t, d, strings.TrimSpace(line)))
	}
	h, ok := names[d.CmdArgs[0].Key]
	if !ok {
		d.Fatalf(t, "heuristic %q", d.CmdArgs[0].Key)
	}
	s, err := solve(b, h)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, kind := range []struct {
		name string
		runs [][]hmhs.Run
	}{{"map", s.Maps}, {"reduce", s.Reduces}} {
		for m, runs := range kind.runs {
			fmt.Fprintf(&out, "%s %d:", kind.name, m)
			for _, r := range runs {
				fmt.Fprintf(&out, " %s*%d", b.Jobs[r.Job].ID, r.Tasks)
			}
			out.WriteString("\n")
		}
	}
	for i, j := range b.Jobs {
		fmt.Fprintf(&out, "%s mapped %.4g ends %.4g\n", j.ID, s.Mapped[i], s.Ends[i])
	}
	return out.String()
}

func job(t *testing.T, d *datadriven.TestData, line string) hmhs.Job {
	id, rest, _ := strings.Cut(line, " ")
	j := hmhs.Job{ID: id}
	for _, stage := range []*hmhs.Stage{&j.Map, &j.Reduce} {
		size, tail, _ := strings.Cut(rest, "[")
		list, more, ok := strings.Cut(tail, "]")
		tasks, seconds, times := strings.Cut(strings.TrimSpace(size), "x")
		var err error
		if stage.Tasks, err = strconv.Atoi(tasks); err != nil || !ok || !times {
			d.Fatalf(t, "%q: %v", line, err)
		}
		if stage.Time, err = strconv.ParseFloat(seconds, 64); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		for _, f := range strings.Fields(list) {
			factor, err := strconv.ParseFloat(f, 64)
			if err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			stage.Factor = append(stage.Factor, factor)
		}
		rest = more
	}
	return j
}

func TestRefusedMachines(t *testing.T) {
	for want, m := range map[string]hmhs.Machine{
		"Maps[0]: field Free is empty":  {},
		"Maps[0]: field Free has -1":    {Free: []float64{0, -1}},
		"Maps[0]: field Free has NaN":   {Free: []float64{math.NaN()}},
		"Maps[0]: field Free has +Inf":  {Free: []float64{math.Inf(1)}},
		"Maps[0]: field Free has 1e+16": {Free: []float64{1e16}},
	} {
		if _, err := solve(&hmhs.Batch{Maps: []hmhs.Machine{m}}, plainHMHS); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
