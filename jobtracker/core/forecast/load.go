package forecast

import (
	"cmp"
	"math"
	"time"

	"github.com/quernmr/quern/scheduler"
)

// Load measures the work that jobs bring: a forecast expects that jobs of the future bring as much. The zero value has
// measured nothing.
type Load struct {
	at     time.Duration     // of the last change
	window float64           // seconds of the past that count
	bySize [2][sizes]float64 // seconds of tasks of jobs that ended in it, by phase and size of the job's phase
	Life   time.Duration     // how long jobs take, on average; 0: not known
}

// sizes is the number of sizes of jobs, which are powers of two seconds.
const sizes = 32

func sizeOf(seconds float64) int {
	return min(max(0, int(math.Log2(max(1, seconds)))), sizes-1)
}

// loadWindow is how long the past counts.
const loadWindow = 10 * time.Minute

// slowLoad is the time without load before a measurement counts fully.
const slowLoad = 60 // seconds

func (l *Load) advance(now time.Duration) {
	passed := max(0, now-l.at).Seconds()
	old := math.Exp(-passed / loadWindow.Seconds())
	l.window = l.window*old + loadWindow.Seconds()*(1-old)
	for phase := range l.bySize {
		for size := range l.bySize[phase] {
			l.bySize[phase][size] *= old
		}
	}
	l.at = now
}

// AddJob adds a job that has ended, with the time that its tasks of each phase took together.
func (l *Load) AddJob(now, life time.Duration, tasks [2]time.Duration) {
	l.advance(now)
	l.Life = smoothed(cmp.Or(l.Life, life), life)
	for phase, took := range tasks {
		l.bySize[phase][sizeOf(took.Seconds())] += took.Seconds()
	}
}

// maxLoad bounds the load of slots: a full cluster may get any number of jobs.
const maxLoad = 0.9

// during returns the work in slot-seconds that jobs of the future bring in some seconds: those that get slots before a phase
// with so much work left. They come independently of each other.
func (l Load) during(now time.Duration, seconds float64, phase int, work float64, later scheduler.Later) moments {
	l.advance(now)
	sum, squares, size := 0.0, 0.0, sizes-1
	switch later {
	case scheduler.LaterWait:
		return moments{}
	case scheduler.LaterShorter:
		size = sizeOf(work)
	}
	for i := range size + 1 {
		sum += l.bySize[phase][i]
		squares += l.bySize[phase][i] * math.Ldexp(1.4, i)
	}
	part := seconds / (l.window + slowLoad)
	return moments{mean: sum * part, variance: squares * part}
}
