package overlap

import (
	"context"
	"math"
	"math/rand/v2"
)

// workload is section 5.3's: Poisson arrivals, log-normal map sizes, and shuffle sizes that are
// the map size times an independent log-normal ratio. All means are 1, so the arrival rate is
// the load of both stations.
type workload struct {
	load float64
	// Deviations of the logarithms. The paper's 3.65 and 3.28 are those of the variables.
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

// logSigma is the deviation of the logarithm of a log-normal variable with mean 1.
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
func (s *source) fill(room []arrival) {
	mapMean, ratioMean := -s.mapSigma*s.mapSigma/2, -s.ratioSigma*s.ratioSigma/2
	for i := range room {
		s.now += s.rand.ExpFloat64() / s.load
		room[i] = arrival{
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

// run gives n arrivals to the engine; false if the context ends before.
func run(ctx context.Context, e engine, s *source, n int) (t *tally, ok bool) {
	var room [chunk]arrival
	for n > 0 {
		if ctx.Err() != nil {
			return nil, false
		}
		some := room[:min(n, chunk)]
		s.fill(some)
		for _, a := range some {
			e.arrive(a)
		}
		n -= len(some)
	}
	e.finish()
	return e.result(), true
}

// Thin size classes, as in Fig. 9: 400 up to a size of 100, and one for the rest.
const (
	thin      = 400
	thinWidth = 0.25
)

// tally counts finished jobs.
type tally struct {
	finished  int
	responses float64 // sum, seconds
	classes   [thin + 1]class
}

// class is the jobs with max(x, y) in a range.
type class struct {
	jobs      int
	slowdowns float64 // sum of response over max(x, y)
}

// done counts a job by its size, max(x, y), and response time.
func (t *tally) done(size, response float64) {
	t.finished++
	t.responses += response
	c := &t.classes[int(min(thin, size*(1/thinWidth)))]
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

// event is the end of a step of that length. A job may be mapped while one, the same or
// another, is drained. If nothing happens, the step reaches its limit.
type event struct {
	wait            float64
	mapped, drained bool
	passed          bool // the head was overtaken
}

// mapping considers a job with so much left that is mapped at rate 1.
func (ev event) mapping(left float64) event {
	if left <= ev.wait {
		ev.wait, ev.mapped = left, true
	}
	return ev
}

// draining considers a job with ready work that falls at that rate.
func (ev event) draining(ready, rate float64) event {
	if rate <= 0 || ready > rate*ev.wait {
		return ev
	}
	wait := ready / rate
	return event{wait: wait, mapped: ev.mapped && wait >= ev.wait, drained: true}
}

// passing considers a job that catches up with the head in that time.
func (ev event) passing(wait float64) event {
	if wait < ev.wait {
		return event{wait: max(0, wait), passed: true}
	}
	return ev
}

// pass advances a step that could have gone to that time.
func (c *clock) pass(ev event, to float64) {
	if c.now += ev.wait; !ev.mapped && !ev.drained && !ev.passed {
		c.now = to // exactly
	}
}

// forever is later than any event.
var forever = math.Inf(1)
