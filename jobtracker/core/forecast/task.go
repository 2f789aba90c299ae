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
	Time      time.Duration // 0: unknown
	Deviation float64       // standard deviation, as a fraction of Time
	Source    string        // of the estimate, for display
}

// The sources of estimates that name no job.
const (
	sourceMeasured = "measured"
	sourceOthers   = "other jobs"
	sourceMaps     = "its maps"
	sourceDefault  = "default"
)

// defaultDeviation is for jobs without enough ended tasks.
const defaultDeviation = 0.3

// pastTasks is the largest weight of history against measured tasks, of a job or on a tracker.
const pastTasks = 4

// TaskTimes has the measured times of a phase's tasks, and of the last job of the same name.
type TaskTimes struct {
	Measured
	Past   *history.Sums // of the last job of the same name; nil: unknown
	PastOf wire.JobID    // id of that job
}

// Task estimates a task without the start of a process. Its Time is 0 if nothing is known.
func (k *TaskTimes) Task(warmUp time.Duration) Task {
	own, tasks := k.Warm.Recent(), k.Warm.Tasks
	if tasks == 0 {
		own, tasks = max(k.All.Recent()-warmUp, k.All.Recent()/3), k.All.Tasks
	}
	own = max(own, minTaskTime)
	switch {
	case tasks == 0 && k.Past == nil:
		return Task{}
	case k.Past == nil || tasks >= pastTasks:
		return Task{own, k.All.Deviation(), sourceMeasured}
	case tasks == 0:
		return Task{max(k.Past.Mean(), minTaskTime), k.Past.Deviation(), "history of " + k.PastOf.String()}
	}
	mean := (time.Duration(tasks)*own + pastTasks*k.Past.Mean()) / time.Duration(tasks+pastTasks)
	return Task{mean, k.Past.Deviation(), sourceMeasured + ", and history of " + k.PastOf.String()}
}

// Mean estimates tasks of jobs without measured times: it is the mean of other jobs, with equal
// weights. The zero Mean has no jobs.
type Mean struct {
	sum  time.Duration // an integer, so the order of additions does not matter
	jobs int
}

// Add adds the mean task time of a job; 0: unknown.
func (m *Mean) Add(task time.Duration) {
	if task > 0 {
		m.sum += task
		m.jobs++
	}
}

// HasJobs reports whether any job was added.
func (m *Mean) HasJobs() bool { return m.jobs > 0 }

// Task is the estimate. Without jobs it is a second.
func (m *Mean) Task() Task {
	if m.HasJobs() {
		return Task{m.sum / time.Duration(m.jobs), defaultDeviation, sourceOthers}
	}
	return Task{time.Second, defaultDeviation, sourceDefault}
}

// Phase is a job's maps or its reduces.
type Phase struct {
	TaskTimes
	TasksLeft int // tasks that have not succeeded, runnable or not
	Running   int // running ones of these

	// Ages has the run times of all running tasks, without process start, in any order.
	// It is nil if there are too many running tasks.
	Ages []time.Duration

	Oldest time.Duration // age of the oldest one that has no second attempt; 0: none, or too many are running
}

// hasAges reports whether Ages has all running tasks.
func (p *Phase) hasAges() bool { return len(p.Ages) == p.Running }

// A task that has run longer than estimated has 1/restDivisor of the estimate left.
const restDivisor = 10

// Rest is the remaining time of a task with an estimate of whole that has run for age. It is
// never zero.
func Rest(whole, age time.Duration) time.Duration { return max(whole-age, whole/restDivisor) }

// Work is the slot-seconds left if each task takes whole. It is 0 if whole is 0, which means
// unknown.
func (p *Phase) Work(whole time.Duration) float64 {
	if whole == 0 {
		return 0
	}
	sum := TotalSeconds(max(0, p.TasksLeft-p.Running), whole)
	if !p.hasAges() {
		return sum + TotalSeconds(p.Running, whole)/2 // on average, half of each is done
	}
	for _, age := range p.Ages {
		sum += Rest(whole, age).Seconds()
	}
	return sum
}

// Correct corrects the mean of ended tasks with the ages of running ones: short tasks end first,
// so the mean is too small at first. It assumes normal times, and uses the EM algorithm for
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
		// A machine that pauses must not raise all estimates.
		t.Time = min(expectedMean(t, tasks, p.ages()), t.Time*3/2)
	}
	return t
}

// ages returns Ages sorted, with negative ones as 0.
func (p *Phase) ages() []time.Duration {
	ages := slices.Clone(p.Ages)
	for i := range ages {
		ages[i] = max(0, ages[i])
	}
	slices.Sort(ages)
	return ages
}

// expectedMean estimates the mean of all tasks, from ended ones with mean t and the running ones.
func expectedMean(t Task, ended int, ages []time.Duration) time.Duration {
	mean := t.Time.Seconds()
	took := mean * float64(ended)
	for range 8 {
		sum, deviation := took, max(t.Deviation, 0.05)*mean
		for _, age := range ages {
			z := (age.Seconds() - mean) / deviation
			beyond := normalCDF(-z)
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

// lateFactor is the fraction of the longest task's time beyond the mean that delays the end. It is
// a half, since that task begins early or late with equal probability.
const lateFactor = 0.5

// lastTasksDelay is the delay of the last tasks relative to a fluid plan. They begin at different
// times, which costs half of a task's time on average, and the longest of them ends last.
func lastTasksDelay(t Task, slots int) time.Duration {
	lost := float64(slots-1)/float64(2*slots) + lateFactor*t.Deviation*expectedMaximum(slots)
	return time.Duration(lost * float64(t.Time))
}

// concurrentTime is the time until the last of several tasks ends that begin together.
func concurrentTime(t Task, tasks int) time.Duration {
	return time.Duration(float64(t.Time) * (1 + t.Deviation*expectedMaximum(tasks)))
}

// belowMean is the probability that the maximum of many values is below its mean:
// exp(-exp(-γ)), by Gumbel's distribution.
const belowMean = 0.57

// lastEnd is the expected time until the last running task ends, given their ages.
func (p *Phase) lastEnd(t Task) time.Duration {
	if !p.hasAges() {
		return concurrentTime(t, p.Running)
	}
	last := time.Duration(0)
	each := math.Pow(belowMean, 1/float64(p.Running))
	for _, age := range p.Ages {
		rest := Rest(t.Time, age)
		if t.Deviation > 0.01 {
			ran := float64(age) / float64(t.Time)
			q := normalCDF((ran - 1) / t.Deviation)
			if q += (1 - q) * each; q < 0.9999 {
				rest = max(rest, time.Duration((1+t.Deviation*normalQuantile(q)-ran)*float64(t.Time)))
			}
		}
		last = max(last, rest)
	}
	return last
}

// overdue is the time by which the oldest task exceeds any usual time. Nothing tells when such a task
// ends: a forecast expects that it takes this time once more.
func (p *Phase) overdue(t Task) time.Duration {
	return max(0, p.Oldest-time.Duration((1+usualDeviations*t.Deviation)*float64(t.Time)))
}

// usualDeviations is the number of standard deviations by which usual tasks exceed the mean.
const usualDeviations = 3

// expectedMaximum is the expected maximum of n standard normal values (Blom 1958).
func expectedMaximum(n int) float64 {
	return normalQuantile((float64(n) - 0.375) / (float64(n) + 0.25))
}

// normalQuantile is the inverse of normalCDF, the standard normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func normalCDF(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
