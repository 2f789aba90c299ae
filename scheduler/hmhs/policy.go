package hmhs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Policy is HMHS in a running system: the Plan's Queues order each tracker's tasks, and each
// Target's Trackers list the trackers on which the job's tasks end soonest.
//
// It dispatches tasks that have not started to the slots as they become free. Maps go by
// Min-Min, then by Pri on each tracker. Reduces of jobs without maps left go by
// Dynamic-Min-Min. [Estimate] gives a job's normal time and factors. Before any of its tasks has
// ended, Work divided by Tasks, which comes from history, replaces the time, and the trackers'
// means replace the factors. Pri takes the reduces' work from Later; if that is unknown, each
// reduce counts as a mean task.
//
// Targets count the tasks that are first for some slot. Minima, which HMHS does not have, come
// before them. If there are fewer tasks than slots, the other slots stay free. Without Trackers
// all slots are alike and there are no Queues. The Metric is ignored: it is makespan.
//
// With few measured pairs of job and tracker, fixed queues lose to FIFO (docs/papers/hmhs.md,
// "With measured factors"). A running system needs no other order for that, because it plans
// again as tasks end. A batch without any measurement ends no later than under FIFO
// (TestUnequalTrackers of jobtracker/core: 0 to 8 % sooner, 18 to 38 % with known pairs). An
// order that ignores machines until enough pairs are measured is worse.
//
// O(J·M·log J + T·log M) for T tasks on M trackers.
type Policy struct{}

// maxPreferred limits the trackers in a Target.
const maxPreferred = 32

// Times and factors outside these bounds are clamped: such measurements mislead, and sums must
// stay finite.
const (
	minSeconds, maxSeconds = 1e-3, 1e9
	minFactor, maxFactor   = 1e-3, 1e3
)

// Plan implements [scheduler.Policy].
func (Policy) Plan(s scheduler.Snapshot) (scheduler.Plan, error) {
	s, err := s.Normal()
	if err != nil {
		return scheduler.Plan{}, err
	}
	if s.Slots == 0 || len(s.Jobs) == 0 {
		return targets(s, &schedule{order: indexes(len(s.Jobs)), ends: make([]float64, len(s.Jobs))}), nil
	}
	o := newSchedule(s)
	if err := o.batch.Check(); err != nil {
		return scheduler.Plan{}, fmt.Errorf("hmhs: %w", err)
	}
	o.solve(s)
	plan := targets(s, o)
	if len(s.Trackers) == 0 {
		return plan, nil
	}
	for m, runs := range o.runs {
		q := scheduler.Queue{Tracker: s.Trackers[m].ID}
		for _, r := range runs {
			q.Runs = append(q.Runs, scheduler.Run{Job: s.Jobs[r.Job].ID, Tasks: r.Tasks})
		}
		plan.Queues = append(plan.Queues, q)
	}
	return plan, nil
}

// schedule is a snapshot as a batch, and how its tasks are dispatched.
type schedule struct {
	batch *Batch    // its Maps and Map stages stand for the snapshot's phase, also for reduces
	order []int     // jobs by precedence
	runs  [][]Run   // by tracker
	ends  []float64 // by job, seconds from now
}

func newSchedule(s scheduler.Snapshot) *schedule {
	b := &Batch{Jobs: make([]Job, len(s.Jobs))}
	for _, t := range s.Trackers {
		b.Maps = append(b.Maps, Machine{t.Free})
	}
	if len(b.Maps) == 0 {
		b.Maps = []Machine{{make([]float64, s.Slots)}}
	}
	speeds := Estimate(s.Measured)
	for i, j := range s.Jobs {
		stage := Stage{Tasks: max(0, j.Tasks-j.Running), Time: j.Work / float64(j.Tasks), Factor: make([]float64, len(b.Maps))}
		if seconds, ok := speeds.Time(j.ID); ok {
			stage.Time = seconds
		}
		stage.Time = min(max(stage.Time, minSeconds), maxSeconds)
		for m := range stage.Factor {
			stage.Factor[m] = 1
			if len(s.Trackers) > 0 {
				stage.Factor[m] = min(max(speeds.Factor(j.ID, s.Trackers[m].ID), minFactor), maxFactor)
			}
		}
		b.Jobs[i] = Job{ID: j.ID.String(), Map: stage}
	}
	return &schedule{batch: b, ends: make([]float64, len(s.Jobs))}
}

func (o *schedule) solve(s scheduler.Snapshot) {
	stages, arrived := o.batch.MapStages(), make([]float64, len(s.Jobs))
	o.runs = MinMin(o.batch.Maps, stages, arrived, o.ends)
	o.order = indexes(len(s.Jobs))
	if s.Phase == wire.Reduce {
		slices.SortStableFunc(o.order, func(a, b int) int { return cmp.Compare(o.ends[a], o.ends[b]) })
		return
	}
	pri := priorities(s)
	slices.SortStableFunc(o.order, func(a, b int) int { return cmp.Compare(pri[a], pri[b]) })
	place := make([]int, len(o.order))
	for at, job := range o.order {
		place[job] = at
	}
	clear(o.ends)
	for m, runs := range o.runs {
		o.runs[m] = SortRuns(runs, place)
		Simulate(o.batch.Maps[m], m, o.runs[m], stages, nil, o.ends)
	}
}

// priorities returns Pri of each job, with its reduces in Later.
func priorities(s scheduler.Snapshot) []float64 {
	work, tasks := 0.0, 0
	for _, j := range s.Jobs {
		work += j.Work
		tasks += j.Tasks
	}
	reduces := make(map[wire.JobID]float64, len(s.Later))
	for _, l := range s.Later {
		if l.Phase == wire.Reduce {
			reduces[l.ID] = l.Work
			if l.Work == 0 {
				reduces[l.ID] = work / float64(tasks) * float64(l.Max)
			}
		}
	}
	pri := make([]float64, len(s.Jobs))
	for i, j := range s.Jobs {
		pri[i] = Priority(j.Work, reduces[j.ID])
	}
	return pri
}

// targets assigns the minima, then each tracker's slots to its first tasks.
func targets(s scheduler.Snapshot, o *schedule) scheduler.Plan {
	slots, left := make([]int, len(s.Jobs)), s.Slots
	for i, j := range s.Jobs {
		slots[i] = j.Min
		left -= j.Min
	}
	wanted := make([]int, len(s.Jobs))
	for m, runs := range o.runs {
		free := len(o.batch.Maps[m].Free)
		for _, r := range runs {
			wanted[r.Job] += min(free, r.Tasks)
			free -= min(free, r.Tasks)
		}
	}
	plan := scheduler.Plan{Targets: make([]scheduler.Target, 0, len(s.Jobs))}
	for _, i := range o.order {
		more := max(0, min(left, wanted[i]-slots[i], s.Jobs[i].Max-slots[i]))
		left -= more
		plan.Targets = append(plan.Targets, scheduler.Target{
			Job: s.Jobs[i].ID, Slots: slots[i] + more, End: o.ends[i], Trackers: preferred(s, o, i),
		})
	}
	return plan
}

// preferred lists the trackers on which a job's tasks end soonest once they start, ties by id.
func preferred(s scheduler.Snapshot, o *schedule, job int) []string {
	if len(s.Trackers) == 0 || o.batch == nil {
		return nil
	}
	factor := o.batch.Jobs[job].Map.Factor
	order := indexes(len(factor))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(factor[a], factor[b]) })
	var names []string
	for _, m := range order[:min(len(order), maxPreferred)] {
		names = append(names, s.Trackers[m].ID)
	}
	return names
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
