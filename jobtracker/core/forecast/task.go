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
	Deviation float64       // standard deviation of tasks, as a fraction of Time
	Error     float64       // standard error of Time, as a fraction
	Source    string        // of the estimate, for display
}

// The sources of estimates that name no job.
const (
	sourceMeasured = "measured"
	sourceOthers   = "other jobs"
	sourceMaps     = "its maps"
	sourceDefault  = "default"
)

const (
	defaultDeviation = 0.3  // for jobs without enough ended tasks
	defaultTasks     = 3    // it counts as so many
	guessError       = 0.8  // of a task time that only other tasks suggest
	leastError       = 0.04 // of a mean of many measured tasks: later tasks have other inputs
	leastDeviation   = 0.02 // few tasks may happen to take equally long
	recentTasks      = 24   // as many tasks count in history.Sum.Recent
)

// TaskTimes has the measured times of a phase's tasks, and what is usual for its name.
type TaskTimes struct {
	Measured
	Past   history.Usual // of the earlier jobs of the same name, for tasks of this size
	PastOf wire.JobID    // id of the last of them
}

// deviation is the standard deviation of task times, as a fraction of their mean.
func (k *TaskTimes) deviation() float64 {
	n, d := float64(max(0, k.All.Tasks-1)), k.All.Deviation()
	weight, usual := float64(defaultTasks), defaultDeviation
	if k.Past.Known() {
		weight, usual = min(k.Past.Tasks, recentTasks), k.Past.Within
	}
	return max(leastDeviation, math.Sqrt((n*d*d+weight*usual*usual)/(n+weight)))
}

// Task estimates a task without the start of a process. Its Time is 0 if nothing is known. Measured tasks and
// earlier jobs count by the inverse of their variance. If they contradict each other, earlier jobs count less.
func (k *TaskTimes) Task(warmUp time.Duration) Task {
	own, tasks := k.Warm.Recent(), k.Warm.Tasks
	if tasks == 0 {
		own, tasks = max(k.All.Recent()-warmUp, k.All.Recent()/3), k.All.Tasks
	}
	t := Task{Time: max(own, minTaskTime), Deviation: k.deviation(), Source: sourceMeasured}
	n := float64(min(tasks, recentTasks))
	t.Error = max(leastError, t.Deviation/math.Sqrt(n)*(1+1/n))
	past, pastError := Duration(k.Past.Seconds), k.Past.Error()
	switch {
	case tasks == 0 && !k.Past.Known():
		return Task{}
	case !k.Past.Known():
		return t
	case tasks == 0:
		return Task{max(past, minTaskTime), t.Deviation, pastError, "history of " + k.PastOf.String()}
	}
	differ := math.Log(k.Past.Seconds / t.Time.Seconds())
	pastError = max(pastError, math.Abs(differ)/3)
	share := t.Error * t.Error / (t.Error*t.Error + pastError*pastError) // of the earlier jobs
	t.Time = Duration(t.Time.Seconds() * math.Exp(share*differ))
	t.Error *= math.Sqrt(1 - share)
	if share > 0.1 {
		t.Source += ", and history of " + k.PastOf.String()
	}
	return t
}

// Mean estimates tasks of jobs without measured times: it is the geometric mean of other jobs, with equal
// weights. The zero Mean has no jobs.
type Mean struct {
	sum, squares int64 // of the logarithms in millionths: with integers, the order of additions does not matter
	jobs         int64
}

// Add adds the mean task time of a job; 0: unknown.
func (m *Mean) Add(task time.Duration) {
	if task > 0 {
		log := math.Log(task.Seconds())
		m.sum, m.squares, m.jobs = m.sum+int64(log*1e6), m.squares+int64(log*log*1e6), m.jobs+1
	}
}

// HasJobs reports whether any job was added.
func (m *Mean) HasJobs() bool { return m.jobs > 0 }

// Task is the estimate. Without jobs it is a second. Its error is how much jobs differ.
func (m *Mean) Task() Task {
	if !m.HasJobs() {
		return Task{time.Second, defaultDeviation, guessError, sourceDefault}
	}
	n := float64(m.jobs)
	mean, squares := float64(m.sum)/1e6/n, float64(m.squares)/1e6/n
	const few = 4 // jobs
	differ := (n*max(0, squares-mean*mean) + few*guessError*guessError) / (n + few)
	return Task{Duration(math.Exp(mean)), defaultDeviation, math.Sqrt(differ * (1 + 1/n)), sourceOthers}
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

// Of more running tasks than these, Correct and lastEnd take a sample.
const (
	maxCorrecting = 64
	maxAges       = 12
)

// Correct corrects the estimate with the ages of running tasks: short tasks end first, so the mean of ended tasks is
// too small at first. It assumes normal times, and uses the EM algorithm for censored observations
// (Dempster, Laird, Rubin 1977).
func (p *Phase) Correct(t Task) Task {
	if t.Time == 0 || len(p.Ages) == 0 {
		return t
	}
	ended, running := p.All.Tasks, len(p.Ages)
	switch {
	case ended == 0 && (t.Source == sourceDefault || t.Source == sourceMaps):
		t.Time = max(t.Time, 2*max(0, slices.Max(p.Ages))) // guess that it is half done
	case ended > 4*running:
	default:
		known := t.Deviation / t.Error // its square is how many ended tasks have this error
		ages, weight := p.ages(maxCorrecting)
		mean, told := expectedMean(t, min(known*known, float64(4*running)), ages, weight)
		// A machine that pauses must not raise all estimates.
		t.Time = min(mean, time.Duration(float64(t.Time)*max(1.5, 1+3*t.Error)))
		t.Error = max(leastError, t.Deviation/math.Sqrt(known*known+min(told, known*known)))
	}
	return t
}

// ages returns Ages in seconds, sorted, with negative ones as 0. Of many it is a sample: each stands for weight tasks.
func (p *Phase) ages(most int) (ages []float64, weight float64) {
	ages = make([]float64, len(p.Ages))
	for i, age := range p.Ages {
		ages[i] = max(0, age.Seconds())
	}
	slices.Sort(ages)
	n := len(ages)
	if n <= most {
		return ages, 1
	}
	for i := range most {
		ages[i] = ages[(2*i+1)*n/(2*most)]
	}
	return ages[:most], float64(n) / float64(most)
}

// expectedMean estimates the mean of all tasks, from ended ones with mean t and the running ones. told is how many ended
// tasks would say as much about the mean as the running ones do.
func expectedMean(t Task, ended float64, ages []float64, weight float64) (expected time.Duration, told float64) {
	mean := t.Time.Seconds()
	took := mean * ended
	for range 8 {
		sum, deviation := took, max(t.Deviation, 0.05)*mean
		told = 0
		for _, age := range ages {
			z := (age - mean) / deviation
			beyond := normalCDF(-z)
			if beyond < 1e-6 { // avoid a division by almost 0
				sum += weight * (age + deviation/4)
				told += weight
				continue
			}
			hazard := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) / beyond
			sum += weight * (mean + deviation*hazard)
			told += weight * hazard * (hazard - z) // Fisher's information
		}
		mean = sum / (ended + weight*float64(len(ages)))
	}
	return time.Duration(mean * float64(time.Second)), told
}

// lastEnd is the time until the last running task ends, given their ages.
func (p *Phase) lastEnd(t Task) moments {
	if !p.hasAges() {
		return t.mixed(func(t *Task) moments { return t.longest(p.Running) })
	}
	ages, weight := p.ages(maxAges)
	return t.mixed(func(t *Task) moments { return t.rests(ages, weight) })
}

// overdue is the time by which the oldest task exceeds any usual time. Nothing tells when such a task
// ends: a forecast expects that it takes this time once more.
func (p *Phase) overdue(t Task) time.Duration {
	return max(0, p.Oldest-time.Duration((1+usualDeviations*t.Deviation)*float64(t.Time)))
}

// usualDeviations is the number of standard deviations by which usual tasks exceed the mean.
const usualDeviations = 3

// normalQuantile is the inverse of normalCDF, the standard normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func normalCDF(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
