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
)

// TestSolve: H1 for every heuristic, and ends are those of the runs played back.
func TestSolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t, 6, 6, rapid.Bool().Draw(t, "whole"))
		for h := HMHS; h <= Sufferage; h++ {
			s, err := Solve(b, h)
			if err != nil {
				t.Fatal(err)
			}
			safetyDispatched(t, h, s.Maps, b.stages(mapOf))
			safetyDispatched(t, h, s.Reduces, b.stages(reduceOf))
			again, err := Replay(b, s)
			if err != nil || !slices.Equal(again.Mapped, s.Mapped) || !slices.Equal(again.Ends, s.Ends) || again.Makespan != s.Makespan {
				t.Fatalf("%d: %+v, played back %+v: %v", h, s, again, err)
			}
			safetyReduces(t, h, b, s)
		}
	})
}

func safetyDispatched(t *rapid.T, h Heuristic, runs [][]Run, stages []Stage) {
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

// safetyReduces plays each machine's reduces back, none before its maps have ended.
func safetyReduces(t *rapid.T, h Heuristic, b *Batch, s *Schedule) {
	ends := slices.Clone(s.Mapped)
	for m, runs := range s.Reduces {
		free := slices.Clone(b.Reduces[m].Free)
		for _, r := range runs {
			for range r.Tasks {
				k := slices.Index(free, slices.Min(free))
				free[k] = max(free[k], s.Mapped[r.Job]) + b.Jobs[r.Job].Reduce.on(m)
				ends[r.Job] = max(ends[r.Job], free[k])
			}
		}
	}
	makespan := 0.0
	for i, end := range ends {
		makespan = max(makespan, end)
		if math.Abs(end-s.Ends[i]) > 1e-9*end {
			t.Fatalf("heuristic %d: job %d ends at %v, played back at %v", h, i, s.Ends[i], end)
		}
	}
	if makespan != s.Makespan {
		t.Fatalf("heuristic %d: makespan %v, played back %v", h, s.Makespan, makespan)
	}
}

// TestSufferage: the kept two least completion times are those found anew.
func TestSufferage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t, 5, 5, rapid.Bool().Draw(t, "whole"))
		stages := b.stages(mapOf)
		s, tasks := newSlow(b.Maps, len(stages)), tasksOf(stages)
		for len(tasks) > 0 {
			task, machine, most, done := 0, 0, -1.0, 0.0
			for at, job := range tasks {
				first, least, next := 0, math.Inf(1), math.Inf(1)
				for m := range b.Maps {
					c := s.available(m) + stages[job].on(m)
					if c < least {
						first, least, next = m, c, least
					} else {
						next = min(next, c)
					}
				}
				if next-least > most {
					task, machine, most, done = at, first, next-least, least
				}
			}
			s.give(machine, tasks[task], done)
			tasks = slices.Delete(tasks, task, task+1)
		}
		if got := sufferage(b.Maps, stages); !slices.EqualFunc(got, s.runs, slices.Equal) {
			t.Fatalf("got %v, anew %v", got, s.runs)
		}
	})
}

// TestScenarios runs testdata/*.txt. Directives:
//
//	solve HEURISTIC maps=M reduces=R   schedules the jobs given, one a line as in
//	    "a 3x2 [1 0.5] 1x4 [1 1]": three maps of 2 seconds, and their factors by
//	    machine, one reduce of 4; prints each machine's tasks and when jobs end
//	refuse                             the same, for what is refused
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		datadriven.RunTest(t, path, run)
	}
}

var names = map[string]Heuristic{"hmhs": HMHS, "reversed": Reversed, "fifo": FIFO, "fifo-pri": FIFOPri, "sufferage": Sufferage}

func run(t *testing.T, d *datadriven.TestData) string {
	var maps, reduces int
	d.ScanArgs(t, "maps", &maps)
	d.ScanArgs(t, "reduces", &reduces)
	b := &Batch{Maps: machines(maps), Reduces: machines(reduces)}
	for line := range strings.Lines(d.Input) {
		b.Jobs = append(b.Jobs, job(t, d, strings.TrimSpace(line)))
	}
	h, ok := names[d.CmdArgs[0].Key]
	if !ok {
		d.Fatalf(t, "heuristic %q", d.CmdArgs[0].Key)
	}
	s, err := Solve(b, h)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, kind := range []struct {
		name string
		runs [][]Run
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

func machines(n int) []Machine {
	all := make([]Machine, n)
	for m := range all {
		all[m].Free = []float64{0}
	}
	return all
}

func job(t *testing.T, d *datadriven.TestData, line string) Job {
	id, rest, _ := strings.Cut(line, " ")
	j := Job{ID: id}
	for _, stage := range []*Stage{&j.Map, &j.Reduce} {
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
	for want, m := range map[string]Machine{
		"Maps[0]: field Free is empty":  {},
		"Maps[0]: field Free has -1":    {Free: []float64{0, -1}},
		"Maps[0]: field Free has NaN":   {Free: []float64{math.NaN()}},
		"Maps[0]: field Free has +Inf":  {Free: []float64{math.Inf(1)}},
		"Maps[0]: field Free has 1e+16": {Free: []float64{1e16}},
	} {
		if _, err := Solve(&Batch{Maps: []Machine{m}}, HMHS); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Solve(new(Batch), Sufferage+1); err == nil {
		t.Error("an unknown heuristic is taken")
	}
}
