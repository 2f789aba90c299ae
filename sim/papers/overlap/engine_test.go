package overlap

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

var engineNames = []string{maxSRPTName, splitName, srptName, lpsName, boundName}

// stepper is an engine that tests can watch event by event.
type stepper interface {
	engine
	step(to float64)
	// left returns the map work and shuffle work left, and whether any shuffle work is ready.
	left() (x, y float64, ready bool)
	rates() *clock
}

func (c *clock) rates() *clock { return c }

func (e *maxSRPT) left() (x, y float64, ready bool) {
	for _, j := range e.jobs {
		x, y, ready = x+j.x, y+j.a+j.ratio*j.x, ready || j.a > 0
	}
	return x, y, ready
}

func (e *splitSRPT) left() (x, y float64, ready bool) {
	for _, list := range [...][]job{e.mapHeavy, e.mapped, e.heavy} {
		for _, j := range list {
			x, y, ready = x+j.x, y+j.a+j.ratio*j.x, ready || j.a > 0
		}
	}
	return x, y, ready
}

func (e *srpt) left() (x, y float64, ready bool) {
	for _, r := range e.toMap {
		j := e.pool[r.job]
		x, y, ready = x+j.x, y+j.ratio*j.x, ready || j.a > 0
		if !j.ready && j.a != 0 {
			panic("a job with work ready is not in the list")
		}
	}
	for _, r := range e.ready {
		y, ready = y+e.pool[r.job].a, ready || e.pool[r.job].a > 0
	}
	return x, y, ready
}

func (e *lps) left() (x, y float64, ready bool) {
	for _, j := range e.piped {
		x, y = x+j.end-e.mapClock, y+(j.end-e.mapClock)*j.ratio
	}
	for _, j := range e.ready {
		x, y, ready = x+j.end-e.mapClock, y+j.a+(j.end-e.mapClock)*j.ratio, ready || j.a > 0
	}
	for _, j := range e.drained {
		y, ready = y+j.end-e.drainClock, true
	}
	for _, j := range e.waiting.jobs[e.waiting.head:] {
		x, y = x+j.end, y+j.end*j.ratio
	}
	return x, y, ready
}

// TestConservation checks every step: the work left falls by the work that the stations do, and
// no station idles while it could work.
func TestConservation(t *testing.T) {
	for _, name := range engineNames {
		e, ok := newEngine(name).(stepper)
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := &source{workload: paperWorkload(0.9), rand: papers.Rand(1, "conservation", 0)}
			jobs := make([]arrival, 20000)
			s.fill(jobs)
			for _, a := range jobs {
				for e.rates().now < a.at {
					checkStep(t, e, a.at)
				}
				e.arrive(a)
			}
			for x, y, _ := e.left(); x+y > 0; x, y, _ = e.left() {
				checkStep(t, e, forever)
			}
			if done := e.result().finished; done != len(jobs) {
				t.Errorf("%d jobs of %d are done", done, len(jobs))
			}
		})
	}
}

func checkStep(t *testing.T, e stepper, to float64) {
	t.Helper()
	x, y, ready := e.left()
	from := e.rates().now
	e.step(to)
	r := e.rates()
	passed := r.now - from
	if x+y == 0 || passed < 1e-9 {
		return // a step of no length may serve no job
	}
	if x > 1e-9 && r.mapping < 1-1e-9 || ready && r.shuffling < 1-1e-9 || r.mapping > 1+1e-9 || r.shuffling > 1+1e-9 {
		t.Fatalf("at %v the stations work at (%v, %v) with (%v, %v) left", from, r.mapping, r.shuffling, x, y)
	}
	afterX, afterY, _ := e.left()
	if done := x - afterX; math.Abs(done-r.mapping*passed) > 1e-6*(1+passed) {
		t.Fatalf("at %v: %v of the map work is done in %v", from, done, passed)
	}
	if done := y - afterY; math.Abs(done-r.shuffling*passed) > 1e-6*(1+passed) {
		t.Fatalf("at %v: %v of the shuffle work is done in %v at rate %v", from, done, passed, r.shuffling)
	}
}

// BenchmarkEngines measures engines with their random numbers. The metric counts arrivals per
// processor time, which other programs hardly change.
func BenchmarkEngines(b *testing.B) {
	for _, name := range engineNames {
		for _, load := range []float64{lowLoad, highLoad} {
			b.Run(fmt.Sprintf("%s/load=%v", name, load), func(b *testing.B) {
				s := &source{workload: paperWorkload(load), rand: papers.Rand(1, "overlap", 0)}
				e := newEngine(name)
				b.ReportAllocs()
				began := papers.ProcessorTime()
				b.ResetTimer()
				run(context.Background(), e, s, b.N)
				b.ReportMetric(float64(b.N)/(papers.ProcessorTime()-began).Seconds()/1e6, "Marrivals/cpu-s")
			})
		}
	}
}
