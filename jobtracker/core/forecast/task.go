package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// Task is the time that a task is estimated to take.
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

// usualDeviation is taken for tasks of which nothing is known.
const usualDeviation = 0.3

// pastTasks is how many tasks history is worth at most, of a job or on a tracker.
const pastTasks = 4

// Known is what is known of the times of a phase's tasks.
type Known struct {
	Measured
	Past   *history.Sums // of the last job of the same name; nil: nothing is known of it
	PastOf wire.JobID    // that job
}

// Task is how long a task takes in a process that has run before. Its Time is 0 if nothing
// is known.
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

// Mean is the time of a task of which nothing is known: the mean of the jobs of which it
// is known, one as good as the other. The zero Mean knows none.
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

// Known says whether any job was added.
func (m *Mean) Known() bool { return m.jobs > 0 }

// Task is the estimate, a second if no job was added.
func (m *Mean) Task() Task {
	if m.Known() {
		return Task{m.sum / time.Duration(m.jobs), usualDeviation, sourceOthers}
	}
	return Task{time.Second, usualDeviation, sourceDefault}
}

// Phase is a job's maps or its reduces.
type Phase struct {
	Known
	Left    int // tasks to be done, runnable or not
	Running int // those of them that run

	// For how long each of those runs, but for the start of its process, in no order. It is
	// nil if there are too many to look at each: they are then taken together.
	Ages []time.Duration
}

// close says whether running tasks are looked at one by one.
func (p *Phase) close() bool { return len(p.Ages) == p.Running }

// tail is the part of a task's time that one which has run for longer has left.
const tail = 10

// Rest is what a task that has run for age has left if it takes that long in all: what it
// has not run of that, and never nothing.
func Rest(whole, age time.Duration) time.Duration { return max(whole-age, whole/tail) }

// Work is the slot-seconds left if a task takes that long: of the tasks that run what they
// have left, of the others all of it; 0 while nothing is known of its tasks.
func (p *Phase) Work(whole time.Duration) float64 {
	if whole == 0 {
		return 0
	}
	sum := Times(max(0, p.Left-p.Running), whole)
	if !p.close() {
		return sum + Times(p.Running, whole)/2 // as many are young as are old
	}
	for _, age := range p.Ages {
		sum += Rest(whole, age).Seconds()
	}
	return sum
}

// Correct is a task's time with regard to those that run: the short ones end first, so
// that the mean of those that have ended is too small as long as there are few. It is what
// it would be if times were normal and each running task took what is to be expected of one
// that has run for so long. That is the EM algorithm for censored observations (Dempster,
// Laird, Rubin 1977).
func (p *Phase) Correct(t Task) Task {
	if t.Time == 0 || len(p.Ages) == 0 {
		return t
	}
	oldest := max(0, slices.Max(p.Ages))
	ended, running := p.All.Tasks, len(p.Ages)
	switch {
	case ended == 0 && (t.Source == sourceDefault || t.Source == sourceMaps):
		t.Time = max(t.Time, 2*oldest) // the best guess is that it is half done
	case ended == 0 && float64(oldest) > float64(t.Time)*(1+2*t.Deviation):
		t.Time += oldest / 2 // what was known is wrong
	case ended == 0 || ended > 4*running:
	default:
		tasks := min(ended, 2*running)
		if p.Past != nil {
			tasks += pastTasks
		}
		// A machine that stands still for a while must not make all tasks long.
		t.Time = min(expected(t, tasks, p.ages()), t.Time*3/2)
	}
	return t
}

// ages is for how long running tasks run, ascending.
func (p *Phase) ages() []time.Duration {
	ages := slices.Clone(p.Ages)
	for i := range ages {
		ages[i] = max(0, ages[i])
	}
	slices.Sort(ages)
	return ages
}

// expected is the mean of so many tasks that have ended, of which t is the mean, and of
// those that still run.
func expected(t Task, ended int, ages []time.Duration) time.Duration {
	mean := t.Time.Seconds()
	took := mean * float64(ended)
	for range 8 {
		sum, deviation := took, max(t.Deviation, 0.05)*mean
		for _, age := range ages {
			z := (age.Seconds() - mean) / deviation
			beyond := below(-z)
			if beyond < 1e-6 { // as good as a certainty: it runs for that long at least
				sum += age.Seconds() + deviation/4
				continue
			}
			sum += mean + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)/beyond
		}
		mean = sum / float64(ended+len(ages))
	}
	return time.Duration(mean * float64(time.Second))
}

// lateFactor is how much of what the longest of so many tasks takes beyond the mean is
// waited for: half, for it begins as likely early as late.
const lateFactor = 0.5

// lastTasks is by how much the last tasks end later than a fluid plan has it, for they
// begin at different times and do not take the same: half of a task's time is lost on
// average, and the longest of those that begin late is what is waited for.
func lastTasks(t Task, slots int) time.Duration {
	lost := float64(slots-1)/float64(2*slots) + lateFactor*t.Deviation*highest(slots)
	return time.Duration(lost * float64(t.Time))
}

// allAtOnce is how long tasks take that begin together.
func allAtOnce(t Task, tasks int) time.Duration {
	return time.Duration(float64(t.Time) * (1 + t.Deviation*highest(tasks)))
}

// belowMean is how likely the highest of many values is below its mean: exp(-exp(-γ)), as
// such are distributed by Gumbel.
const belowMean = 0.57

// last is when the last of the running tasks ends, in the mean, given for how long each
// has run.
func (p *Phase) last(t Task) time.Duration {
	if !p.close() {
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

// highest is by how many deviations the highest of n normal values is above the mean, in
// the mean (Blom 1958).
func highest(n int) float64 {
	return quantile((float64(n) - 0.375) / (float64(n) + 0.25))
}

// quantile of the standard normal distribution, and below its inverse.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func below(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
