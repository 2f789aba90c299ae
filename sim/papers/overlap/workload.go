package overlap

import (
	"context"
	"math"
	"math/rand/v2"
)

// workload is the workload of section 5.3: Poisson arrivals and log-normal map sizes. A shuffle
// size is the map size times an independent log-normal ratio. All means are 1, so the arrival
// rate is the load of both stations.
type workload struct {
	load float64
	// Deviations of the logarithms. The paper's 3.65 and 3.28 are deviations of the variables.
	mapSigma, ratioSigma float64
}

// Standard deviations in section 5.3.
const (
	mapDeviation   = 3.65
	ratioDeviation = 3.28
)

func paperWorkload(load float64) workload {
	return workload{load, logSigma(mapDeviation), logSigma(ratioDeviation)}
}

// logSigma returns the deviation of the logarithm of a log-normal variable with mean 1.
func logSigma(deviation float64) float64 { return math.Sqrt(math.Log1p(deviation * deviation)) }

// arrival is an arriving job.
type arrival struct {
	at    float64 // seconds
	x     float64 // map size, seconds of the whole station
	ratio float64 // shuffle size over map size
}

// source draws a workload's arrivals.
type source struct {
	workload
	rand *rand.Rand
	now  float64
}

// fill fills the slice with the next arrivals.
func (s *source) fill(arrivals []arrival) {
	mapMean, ratioMean := -s.mapSigma*s.mapSigma/2, -s.ratioSigma*s.ratioSigma/2
	for i := range arrivals {
		s.now += s.rand.ExpFloat64() / s.load
		arrivals[i] = arrival{
			at:    s.now,
			x:     math.Exp(s.mapSigma*s.rand.NormFloat64() + mapMean),
			ratio: math.Exp(s.ratioSigma*s.rand.NormFloat64() + ratioMean),
		}
	}
}

// engine simulates one policy. It allocates nothing per event once its lists are large enough.
type engine interface {
	// arrive advances time to the job's arrival, and adds it.
	arrive(arrival)
	// finish advances time until no job is left.
	finish()
	// result returns the counts.
	result() *tally
}

// chunk is the number of arrivals drawn at a time.
const chunk = 1024

// run gives n arrivals to the engine; not ok if the context ends first.
func run(ctx context.Context, e engine, s *source, n int) (t *tally, ok bool) {
	var buffer [chunk]arrival
	for n > 0 {
		if ctx.Err() != nil {
			return nil, false
		}
		next := buffer[:min(n, chunk)]
		s.fill(next)
		for _, a := range next {
			e.arrive(a)
		}
		n -= len(next)
	}
	e.finish()
	return e.result(), true
}

// Thin size classes, as in Fig. 9: 400 up to a size of 100, and one class for larger sizes.
const (
	thinClasses = 400
	thinWidth   = 0.25
)

// tally counts finished jobs.
type tally struct {
	finished  int
	responses float64 // sum, seconds
	classes   [thinClasses + 1]class
}

// class is the jobs with max(x, y) in a range.
type class struct {
	jobs      int
	slowdowns float64 // sum of response over max(x, y)
}

// count counts a finished job by its size, max(x, y), and response time.
func (t *tally) count(size, response float64) {
	t.finished++
	t.responses += response
	c := &t.classes[int(min(thinClasses, size*(1/thinWidth)))]
	c.jobs++
	c.slowdowns += response / size
}

// clock is the common part of all engines: the time, the counts, and the rates of the last
// step, for tests.
type clock struct {
	now                float64
	mapping, shuffling float64
	tally
}

func (c *clock) result() *tally { return &c.tally }

// event is the end of a step. A job may be mapped at the same time as a job is drained. If
// neither happens, the step reaches its limit.
type event struct {
	wait            float64 // length of the step
	mapped, drained bool
	passed          bool // a job has caught up with the head
}

// mapping returns the earlier event: ev, or the end of map work that is left, at rate 1.
func (ev event) mapping(left float64) event {
	if left <= ev.wait {
		ev.wait, ev.mapped = left, true
	}
	return ev
}

// draining returns the earlier event: ev, or the end of ready work that falls at a rate.
func (ev event) draining(ready, rate float64) event {
	if rate <= 0 || ready > rate*ev.wait {
		return ev
	}
	wait := ready / rate
	return event{wait: wait, mapped: ev.mapped && wait >= ev.wait, drained: true}
}

// passing returns the earlier event: ev, or a job catching up with the head after a wait.
func (ev event) passing(wait float64) event {
	if wait < ev.wait {
		return event{wait: max(0, wait), passed: true}
	}
	return ev
}

// pass advances time by a step. Without an event it goes exactly to the limit.
func (c *clock) pass(ev event, to float64) {
	if c.now += ev.wait; !ev.mapped && !ev.drained && !ev.passed {
		c.now = to
	}
}

// forever is later than any event.
var forever = math.Inf(1)
