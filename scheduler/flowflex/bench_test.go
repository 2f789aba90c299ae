package flowflex

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/quernmr/quern/scheduler"
)

// drawCluster draws flows of 20 jobs each as in section 5.1, with deadlines that many of the flows
// can meet.
func drawCluster(flows, slots int, m scheduler.Metric) Problem {
	random := rand.New(rand.NewPCG(1, uint64(flows)))
	p := Problem{Slots: slots}
	for i := range flows {
		f := Flow{ID: fmt.Sprint("f", i)}
		path := 0.0
		for k := range 20 {
			j := Job{Max: 1 + random.IntN(25)}
			seconds := 1 + 9*random.Float64()
			j.Work = seconds * float64(j.Max)
			path += seconds / 2
			for before := range k {
				if random.IntN(2) == 0 {
					j.After = append(j.After, before)
				}
			}
			f.Jobs = append(f.Jobs, j)
		}
		f.Cost = scheduler.Cost{Penalty: m.Penalty, Weight: 1 + 9*random.Float64()}
		span := float64(flows) * 20 * 70 / float64(slots)
		f.Cost.Due = path + span*random.Float64()
		for k := range 5 {
			l := scheduler.Level{Due: path + span*(float64(k)+random.Float64())/5, Cost: float64(k + 1)}
			f.Cost.Levels = append(f.Cost.Levels, l)
		}
		f.Cost = expectedCost(f.Cost)
		p.Flows = append(p.Flows, f)
	}
	return p
}

// processorTime returns this process's processor time in seconds. Unlike elapsed time it does
// not grow with the load of the machine.
func processorTime(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

// BenchmarkSolve measures one allocation: flows of 20 jobs each on 25 slots, as in the paper, and
// on 1,000 slots.
func BenchmarkSolve(b *testing.B) {
	for _, name := range []string{"sum-response", "sum-tardy", "sum-tardiness", "sum-sla", "max-response", "max-tardiness"} {
		m, err := scheduler.ParseMetric(name + "-weighted")
		if err != nil {
			b.Fatal(err)
		}
		for _, slots := range []int{25, 1000} {
			for _, flows := range []int{25, 50, 100} {
				b.Run(fmt.Sprintf("%s/slots=%d/flows=%d", name, slots, flows), func(b *testing.B) {
					p := drawCluster(flows, slots, m)
					before := processorTime(b)
					for b.Loop() {
						if _, err := Solve(p, Options{Aggregate: m.Aggregate}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(1e3*(processorTime(b)-before)/float64(b.N), "cpu-ms/op")
				})
			}
		}
	}
}

// BenchmarkManyFlows measures one allocation of flows of one job each, on as many slots.
func BenchmarkManyFlows(b *testing.B) {
	for _, name := range []string{"sum-response", "sum-tardiness", "max-tardiness"} {
		m, err := scheduler.ParseMetric(name + "-weighted")
		if err != nil {
			b.Fatal(err)
		}
		for _, flows := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/flows=%d", name, flows), func(b *testing.B) {
				p := drawCluster(flows, flows, m)
				for i := range p.Flows {
					p.Flows[i].Jobs = p.Flows[i].Jobs[:1]
				}
				before := processorTime(b)
				for b.Loop() {
					if _, err := Solve(p, Options{Aggregate: m.Aggregate}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(1e3*(processorTime(b)-before)/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
