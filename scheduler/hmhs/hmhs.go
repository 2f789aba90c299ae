// Package hmhs schedules a batch of jobs on unlike machines to end early: HMHS (Chen, Shen,
// Chen, Guo, NPC 2013). Sections, equations and algorithms in this package are that paper's.
//
// HMHS dispatches all map tasks by Min-Min ([MinMin]), orders each machine's tasks by Pri, the
// modified Johnson rule ([Priority], [SortRuns]), and dispatches the reduces by Dynamic-Min-Min
// (Algorithm 1, [MinMin] again) as their jobs' maps end. [Policy] does so in a running system,
// for the present tasks. [Estimate] measures the speed of trackers for jobs. sim/papers/hmhs
// has whole batches and the heuristics that the paper compares.
//
// A factor is the time of a task on a machine divided by its normal time: a larger factor is a
// slower machine. Factors differ by job *and* machine. If machines are merely slow for every
// job, Min-Min has nothing to match and gains little.
//
// Invariants
//
//	H1  Every task is dispatched once, to one machine. No slot runs two tasks at once, and
//	    none starts before its job has arrived.
//	H2  Everything is a function of its arguments. Ties go to the shorter task, then to the
//	    lower job, then to the lower machine.
//
// Complexity, for J jobs, M machines and T tasks: dispatching takes O(J·M·log J + T·log M).
// Reduces take O(J·M) more, because their jobs arrive one by one, and up to O(T·M) to find the
// machine that is free first.
//
// There is no I/O and no clock. Callers are the job tracker's policy goroutine and simulations.
package hmhs

import "slices"

// Batch is jobs and machines. Times are seconds from now.
type Batch struct {
	Jobs          []Job
	Maps, Reduces []Machine // machines with map slots, and machines with reduce slots
}

// Machine has one entry for each of its slots: the time at which the slot becomes free.
type Machine struct{ Free []float64 }

// Job has maps and then reduces; either may be absent.
type Job struct {
	ID          string // for errors
	Map, Reduce Stage
}

// Stage is the maps or the reduces of a job. They are all alike.
type Stage struct {
	Tasks  int
	Time   float64   // seconds of a task where the factor is 1
	Factor []float64 // by machine
}

// Run is consecutive tasks of one job.
type Run struct{ Job, Tasks int }

// SortRuns sorts a machine's tasks in place and returns one Run for each job. place[job] is the
// job's position in the order.
func SortRuns(runs []Run, place []int) []Run {
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

// Seconds returns the seconds of a task on the machine with this index.
func (s *Stage) Seconds(machine int) float64 { return s.Time * s.Factor[machine] }

func mapOf(j *Job) *Stage    { return &j.Map }
func reduceOf(j *Job) *Stage { return &j.Reduce }

// MapStages returns the maps of all jobs.
func (b *Batch) MapStages() []Stage { return b.stages(mapOf) }

// ReduceStages returns the reduces of all jobs.
func (b *Batch) ReduceStages() []Stage { return b.stages(reduceOf) }

func (b *Batch) stages(of func(*Job) *Stage) []Stage {
	all := make([]Stage, len(b.Jobs))
	for i := range b.Jobs {
		all[i] = *of(&b.Jobs[i])
	}
	return all
}

// Add appends a task to a machine's runs.
func Add(runs []Run, job int) []Run {
	if n := len(runs); n > 0 && runs[n-1].Job == job {
		runs[n-1].Tasks++
		return runs
	}
	return append(runs, Run{job, 1})
}

// Priority returns Pri (equation 4) for the total slot-seconds of a job's maps and reduces. The
// job with the least Pri goes first. A job without reduces goes last, a job without maps first.
func Priority(mapWork, reduceWork float64) float64 {
	sign := -1.0
	if mapWork > reduceWork {
		sign = 1
	}
	return sign / min(mapWork, reduceWork) // division by 0 gives an infinity, which sorts correctly
}
