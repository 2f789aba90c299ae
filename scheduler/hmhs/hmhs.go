// Package hmhs schedules a batch of jobs on unlike machines so that it ends early:
// HMHS (Chen, Shen, Chen, Guo, NPC 2013). Sections, equations and algorithms named in
// this package are that paper's.
//
// [Solve] schedules a whole [Batch]: it dispatches all map tasks by Min-Min, orders
// each machine's tasks by Pri, the modified Johnson rule, and dispatches the reduces
// by Dynamic-Min-Min (Algorithm 1) as their jobs' maps end. The baselines of the paper
// and sufferage instead of Min-Min are other [Heuristic] values. [Policy] is the same
// as a scheduler.Policy, and [Estimate] measures how fast trackers are for jobs.
//
// A factor is the time of a task on a machine over its normal time: a larger factor is
// a slower machine. Factors differ by job *and* machine. Where machines are merely slow
// for everyone, Min-Min has nothing to match and gains little.
//
// Invariants
//
//	H1  Every task is dispatched once, to one machine; no slot runs two tasks at once,
//	    and no reduce starts before its job's last map has ended.
//	H2  Solve is a function of its Batch. Ties go to the shorter task, then to the
//	    lower job, then to the lower machine.
//
// Complexity, for J jobs, M machines and T tasks: dispatching takes
// O(J·M·log J + T·log M) and, for reduces, O(J·M) more as jobs arrive and O(T·M) at
// worst as the earliest free machine moves; sufferage takes O(T·(J + M)) up to ties.
//
// Nobody calls this but the job tracker's policy goroutine and simulations; all of it
// is functions of values.
package hmhs

import (
	"fmt"
	"slices"
)

// Batch is what there is to do and what there is to do it with. Times are seconds from
// now.
type Batch struct {
	Jobs          []Job
	Maps, Reduces []Machine // those with map slots and those with reduce slots
}

// Machine has one entry for each of its slots: when the slot is free.
type Machine struct{ Free []float64 }

// Job has maps and then reduces; either may be absent.
type Job struct {
	ID          string // for errors
	Map, Reduce Stage
}

// Stage is tasks that are all alike.
type Stage struct {
	Tasks  int
	Time   float64   // seconds of a task where the factor is 1
	Factor []float64 // by machine
}

// Heuristic is a way to schedule a batch.
type Heuristic uint8

const (
	HMHS      Heuristic = iota // Min-Min, Pri ascending, Dynamic-Min-Min (section 3.3)
	Reversed                   // HMHS with Pri descending: the paper's R-HMHS
	FIFO                       // by index, to the machine that is free first, whatever its speed
	FIFOPri                    // FIFO in the order of Pri
	Sufferage                  // HMHS with sufferage for Min-Min: ours
)

// Schedule is what a heuristic makes of a batch.
type Schedule struct {
	Order         []int     // jobs in the order that the heuristic keeps
	Maps, Reduces [][]Run   // by machine, in the order in which it runs them
	Mapped        []float64 // by job: when its last map ends (A, equation 2); 0 without maps
	Ends          []float64 // by job: when its last task ends
	Makespan      float64   // when the last job ends (C, equation 3)
}

// Run is some tasks of one job, one after the other.
type Run struct{ Job, Tasks int }

// Solve schedules the batch. It refuses what has no meaning: see [Batch.Check].
func Solve(b *Batch, h Heuristic) (*Schedule, error) {
	if h > Sufferage {
		return nil, fmt.Errorf("heuristic %d is unknown", h)
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	s := &Schedule{
		Order:  Sequence(b),
		Mapped: make([]float64, len(b.Jobs)),
		Ends:   make([]float64, len(b.Jobs)),
	}
	if h == Reversed {
		slices.Reverse(s.Order)
	}
	if h == FIFO || h == FIFOPri {
		if h == FIFO {
			slices.Sort(s.Order)
		}
		s.Maps = fifo(b.Maps, b.stages(mapOf), s.Order, nil, s.Mapped)
		copy(s.Ends, s.Mapped)
		s.Reduces = fifo(b.Reduces, b.stages(reduceOf), s.Order, s.Mapped, s.Ends)
	} else {
		s.mapped(b, h)
		copy(s.Ends, s.Mapped)
		s.Reduces = minMin(b.Reduces, b.stages(reduceOf), s.Mapped, s.Ends)
	}
	for _, end := range s.Ends {
		s.Makespan = max(s.Makespan, end)
	}
	return s, nil
}

// mapped is steps 1 and 2 of section 3.3.
func (s *Schedule) mapped(b *Batch, h Heuristic) {
	stages := b.stages(mapOf)
	if h == Sufferage {
		s.Maps = sufferage(b.Maps, stages)
	} else {
		s.Maps = minMin(b.Maps, stages, make([]float64, len(stages)), make([]float64, len(stages)))
	}
	place := make([]int, len(s.Order))
	for at, job := range s.Order {
		place[job] = at
	}
	for m, runs := range s.Maps {
		s.Maps[m] = sorted(runs, place)
		play(b.Maps[m], m, s.Maps[m], stages, nil, s.Mapped)
	}
}

// sorted is a machine's tasks in order of their jobs, one Run for each job.
func sorted(runs []Run, place []int) []Run {
	slices.SortFunc(runs, func(a, b Run) int { return place[a.Job] - place[b.Job] })
	out := runs[:0]
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].Job == r.Job {
			out[n-1].Tasks += r.Tasks
			continue
		}
		out = append(out, r)
	}
	return out
}

func earlier(a, b float64) bool { return a < b }

// on is the seconds of a task on a machine.
func (s *Stage) on(machine int) float64 { return s.Time * s.Factor[machine] }

func mapOf(j *Job) *Stage    { return &j.Map }
func reduceOf(j *Job) *Stage { return &j.Reduce }

// stages is one stage of all jobs.
func (b *Batch) stages(of func(*Job) *Stage) []Stage {
	all := make([]Stage, len(b.Jobs))
	for i := range b.Jobs {
		all[i] = *of(&b.Jobs[i])
	}
	return all
}

// add appends a task to a machine's runs.
func add(runs []Run, job int) []Run {
	if n := len(runs); n > 0 && runs[n-1].Job == job {
		runs[n-1].Tasks++
		return runs
	}
	return append(runs, Run{job, 1})
}
