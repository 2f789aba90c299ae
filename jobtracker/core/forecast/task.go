package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// Task is the estimated time of a task.
type Task struct {
	Time      time.Duration // 0: not known
	Deviation float64       // as a part of it
	Source    string        // of the estimate
}

// The sources of estimates that name no job.
const (
	sourceMeasured = "measured"
	sourceOthers   = "other jobs"
	sourceMaps     = "its maps"
	sourceDefault  = "default"
)

// defaultDeviation is taken for tasks of which nothing is known.
const defaultDeviation = 0.3

// pastTasks is how many tasks history counts for at most, of a job or on a tracker.
const pastTasks = 4

// Known is the measured times of a phase's tasks, and those of the last job of the same name.
type Known struct {
	Measured
	Past   *history.Sums // of the last job of the same name; nil: unknown
	PastOf wire.JobID    // that job
}

// Task estimates a task in a running process. Its Time is 0 if nothing is known.
func (k *Known) Task(warmUp time.Duration) Task {
	own, tasks := k.Warm.Recent(), k.Warm.Tasks
	if tasks == 0 {
		own, tasks = max(k.All.Recent()-warmUp, k.All.Recent()/3), k.All.Tasks
	}
	own = max(own, leastTask)
	switch {
	case tasks == 0 && k.Past == nil:
		return Task{}
	case k.Past == nil || tasks >= pastTasks:
		return Task{own, k.All.Deviation(), sourceMeasured}
	case tasks == 0:
		return Task{max(k.Past.Mean(), leastTask), k.Past.Deviation(), "history of " + k.PastOf.String()}
	}
	mean := (time.Duration(tasks)*own + pastTasks*k.Past.Mean()) / time.Duration(tasks+pastTasks)
	return Task{mean, k.Past.Deviation(), sourceMeasured + ", and history of " + k.PastOf.String()}
}

// Mean estimates tasks of jobs without measures: the mean over other jobs, equally weighted.
// The zero Mean has none.
type Mean struct {
	sum  time.Duration // an integer: the order in which jobs are added does not matter
	jobs int
}

// Add adds a job whose tasks take that long; 0: that is not known.
func (m *Mean) Add(task time.Duration) {
	if task > 0 {
		m.sum += task
		m.jobs++
	}
}

// Known reports whether any job was added.
func (m *Mean) Known() bool { return m.jobs > 0 }

// Task is the estimate, a second if no job was added.
func (m *Mean) Task() Task {
	if m.Known() {
		return Task{m.sum / time.Duration(m.jobs), defaultDeviation, sourceOthers}
	}
	return Task{time.Second, defaultDeviation, sourceDefault}
}

// Phase is a job's maps or its reduces.
type Phase struct {
	Known
	Left    int // tasks to be done, runnable or not
	Running int // those of them that run

	// Ages is how long each running task runs, without the start of its process, in no order.
	// It is nil if there are too many to look at each.
	Ages []time.Duration
}

// hasAges reports whether running tasks are looked at one by one.
func (p *Phase) hasAges() bool { return len(p.Ages) == p.Running }

// minRestPart: a task that has run longer than estimated has 1/minRestPart of that left.
const minRestPart = 10

// Rest is the remaining time of a task that has run for age and takes whole in all. It is
// never zero.
func Rest(whole, age time.Duration) time.Duration { return max(whole-age, whole/minRestPart) }

// Work is the slot-seconds left if each task takes whole: the rest of running tasks, and all
// of the others. It is 0 if whole is 0: not known.
func (p *Phase) Work(whole time.Duration) float64 {
	if whole == 0 {
		return 0
	}
	sum := TotalSeconds(max(0, p.Left-p.Running), whole)
	if !p.hasAges() {
		return sum + TotalSeconds(p.Running, whole)/2 // on average, half of each is done
	}
	for _, age := range p.Ages {
		sum += Rest(whole, age).Seconds()
	}
	return sum
}

// Correct corrects the mean of ended tasks by the running ones: short tasks end first, so that
// the mean is too small at first. It assumes normal times, and uses the EM algorithm for
// censored observations (Dempster, Laird, Rubin 1977).
func (p *Phase) Correct(t Task) Task {
	if t.Time == 0 || len(p.Ages) == 0 {
		return t
	}
	oldest := max(0, slices.Max(p.Ages))
	ended, running := p.All.Tasks, len(p.Ages)
	switch {
	case ended == 0 && (t.Source == sourceDefault || t.Source == sourceMaps):
		t.Time = max(t.Time, 2*oldest) // guess that it is half done
	case ended == 0 && float64(oldest) > float64(t.Time)*(1+2*t.Deviation):
		t.Time += oldest / 2 // the estimate was too low
	case ended == 0 || ended > 4*running:
	default:
		tasks := min(ended, 2*running)
		if p.Past != nil {
			tasks += pastTasks
		}
		// A machine that pauses for a while must not make all estimates long.
		t.Time = min(expected(t, tasks, p.ages()), t.Time*3/2)
	}
	return t
}

// ages sorts Ages, without negative ones.
func (p *Phase) ages() []time.Duration {
	ages := slices.Clone(p.Ages)
	for i := range ages {
		ages[i] = max(0, ages[i])
	}
	slices.Sort(ages)
	return ages
}

// expected estimates the mean of all tasks: ended ones with mean t, and running ones with ages.
func expected(t Task, ended int, ages []time.Duration) time.Duration {
	mean := t.Time.Seconds()
	took := mean * float64(ended)
	for range 8 {
		sum, deviation := took, max(t.Deviation, 0.05)*mean
		for _, age := range ages {
			z := (age.Seconds() - mean) / deviation
			beyond := below(-z)
			if beyond < 1e-6 { // avoid a division by almost 0
				sum += age.Seconds() + deviation/4
				continue
			}
			sum += mean + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)/beyond
		}
		mean = sum / float64(ended+len(ages))
	}
	return time.Duration(mean * float64(time.Second))
}

// lateFactor is the part by which the longest task delays the end: half of its time beyond the
// mean, since it begins early or late with equal probability.
const lateFactor = 0.5

// lastTasks is the delay of the last tasks relative to a fluid plan: they begin at different
// times, which loses half of a task's time on average, and the longest of them ends last.
func lastTasks(t Task, slots int) time.Duration {
	lost := float64(slots-1)/float64(2*slots) + lateFactor*t.Deviation*highest(slots)
	return time.Duration(lost * float64(t.Time))
}

// allAtOnce is how long tasks take that begin together.
func allAtOnce(t Task, tasks int) time.Duration {
	return time.Duration(float64(t.Time) * (1 + t.Deviation*highest(tasks)))
}

// belowMean is the probability that the highest of many values is below its mean:
// exp(-exp(-γ)) by Gumbel's distribution.
const belowMean = 0.57

// lastEnd is the expected time until the last running task ends, given their ages.
func (p *Phase) lastEnd(t Task) time.Duration {
	if !p.hasAges() {
		return allAtOnce(t, p.Running)
	}
	last := time.Duration(0)
	each := math.Pow(belowMean, 1/float64(p.Running))
	for _, age := range p.Ages {
		rest := Rest(t.Time, age)
		if t.Deviation > 0.01 {
			ran := float64(age) / float64(t.Time)
			q := below((ran - 1) / t.Deviation)
			if q += (1 - q) * each; q < 0.9999 {
				rest = max(rest, time.Duration((1+t.Deviation*quantile(q)-ran)*float64(t.Time)))
			}
		}
		last = max(last, rest)
	}
	return last
}

// highest is the expected highest of n standard normal values (Blom 1958).
func highest(n int) float64 {
	return quantile((float64(n) - 0.375) / (float64(n) + 0.25))
}

// quantile is that of the standard normal distribution; its inverse is the function below.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func below(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
