package flex_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/wire"
)

// manyJobs returns a snapshot of many jobs, four in five of them small. Their minima sum up to a
// quarter of the slots. Deadlines and SLA steps are spread over the time of all work.
func manyJobs(jobs, slots int, m scheduler.Metric) scheduler.Snapshot {
	r := rand.New(rand.NewPCG(1, uint64(jobs)))
	s := scheduler.Snapshot{Phase: wire.Map, Slots: slots, Metric: m}
	total := 0.0
	for n := range jobs {
		j := scheduler.Job{ID: wire.JobID{Start: 1, N: n + 1}, Max: 1 + r.IntN(2*slots/10)}
		if n%5 == 0 {
			j.Max = 1 + r.IntN(2*slots)
		}
		j.Min = min(j.Max, r.IntN(1+slots/2/jobs))
		j.Work = float64(j.Max) * (5 + 10*r.Float64())
		j.Goal.Weight = 1 - r.Float64()
		total += j.Work
		s.Jobs = append(s.Jobs, j)
	}
	horizon := total / float64(slots)
	for i := range s.Jobs {
		g := &s.Jobs[i].Goal
		g.Deadline = seconds(r.Float64() * horizon)
		at := 0.0
		for k := range 3 {
			at += (0.01 + r.Float64()) * horizon / 2
			g.Steps = append(g.Steps, scheduler.Step{By: seconds(at), Cost: float64(k+1) * r.Float64() / 3})
			if k > 0 {
				g.Steps[k].Cost = max(g.Steps[k].Cost, g.Steps[k-1].Cost)
			}
		}
	}
	return s
}

// BenchmarkPlan measures one allocation, from the snapshot to the plan.
func BenchmarkPlan(b *testing.B) {
	for _, m := range scheduler.Metrics() {
		for _, jobs := range []int{10, 100, 1000, 10000} {
			slots := 10 * jobs
			b.Run(fmt.Sprintf("%v/jobs=%d", m, jobs), func(b *testing.B) {
				s := manyJobs(jobs, slots, m)
				for b.Loop() {
					if _, err := (flex.Policy{}).Plan(s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkNarrow measures one allocation for jobs of at most 40 tasks. Half of the tasks have
// slots, so thousands of jobs are at their maxima.
func BenchmarkNarrow(b *testing.B) {
	for _, m := range scheduler.Metrics() {
		for _, jobs := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%v/jobs=%d", m, jobs), func(b *testing.B) {
				s := manyJobs(jobs, 10*jobs, m)
				for i := range s.Jobs {
					j := &s.Jobs[i]
					j.Max = 1 + i%40
					j.Min = min(j.Min, j.Max)
				}
				before := processorTime(b)
				for b.Loop() {
					if _, err := (flex.Policy{}).Plan(s); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(1e3*(processorTime(b)-before)/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// processorTime returns this process's processor time in seconds. Unlike elapsed time it does
// not grow with the load of the machine.
func processorTime(b *testing.B) float64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// BenchmarkPack measures packing one ordering.
func BenchmarkPack(b *testing.B) {
	for _, jobs := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			s, err := manyJobs(jobs, 10*jobs, scheduler.Metric{}).Normal()
			if err != nil {
				b.Fatal(err)
			}
			p := flex.FromSnapshot(s)
			order := rand.New(rand.NewPCG(1, 1)).Perm(jobs)
			for b.Loop() {
				flex.Pack(p, order)
			}
		})
	}
}

// BenchmarkFair measures FAIR's plan.
func BenchmarkFair(b *testing.B) {
	for _, jobs := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			s := manyJobs(jobs, 10*jobs, scheduler.Metric{})
			for b.Loop() {
				if _, err := (scheduler.Fair{}).Plan(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
