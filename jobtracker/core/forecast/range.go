package forecast

import (
	"math"
	"time"
)

// Range has the times between which a job ends in nine of ten cases. They are on the caller's clock.
// The zero Range means that the end is not known.
type Range struct{ Earliest, Likely, Latest time.Duration }

// Standard errors as a fraction of what they are about. [Range] was calibrated with "mrsim forecast" and TestRanges.
const (
	runsDiffer   = 0.15 // the mean task time of the last job with the same name
	guessed      = 0.8  // a task time that only other tasks suggest
	leastError   = 0.04 // a mean of many measured tasks: later tasks have other inputs
	leastCV      = 0.05 // the deviation of few tasks that happen to take equally long
	modelError   = 0.15 // the time left: retries, slow task trackers, later jobs
	sharesDiffer = 0.25 // the time that tasks of other jobs take: later jobs and plans change it
	lastBegins   = 0.2  // when the last tasks begin, in task times
	shuffleError = 0.3  // the time that the shuffle takes after the maps
	closeError   = 0.5  // the time from the last task to the end
)

// maximumDeviation is about the standard deviation of the maximum of n standard normal values.
func maximumDeviation(n int) float64 { return 1 / math.Sqrt(1+math.Log(float64(n))) }

// skew is how much longer the longest of n tasks takes, as a fraction of their mean, if their times are
// log-normal and not normal. Often some are much longer than others.
func skew(deviation float64, n int) float64 {
	x := deviation * max(0, expectedMaximum(n))
	return math.Exp(x) - 1 - x
}

// quantile bounds nine tenths of a normal distribution, from both sides.
const quantile = 1.645

// spread is what is uncertain about an end: a sum of variances, in square seconds, of independent causes.
type spread float64

func (s *spread) add(seconds float64) { *s += spread(seconds * seconds) }

// around returns the range with a likely end. The rest of a job's life has a log-normal distribution with
// the standard deviation of the spread: it is never negative, and its long side is late.
func (s spread) around(now, likely time.Duration) Range {
	rest := (likely - now).Seconds()
	if rest <= 0 {
		return Range{likely, likely, likely}
	}
	factor := math.Exp(quantile * math.Sqrt(math.Log1p(float64(s)/(rest*rest))))
	return Range{now + Duration(rest/factor), likely, now + Duration(rest*factor)}
}

// others is what the tasks of all jobs have left in a phase.
type others struct {
	work      float64 // slot-seconds
	uncertain spread  // of work, in square slot-seconds
}

// meanError is the standard error of a phase's task time, as a fraction of it. The error of a mean falls
// with the square root of the number of tasks; the second factor is for few tasks.
func (p *Phase) meanError(t Task) float64 {
	differ := guessed
	if p.Past != nil {
		differ = math.Hypot(runsDiffer, p.Past.Deviation()/math.Sqrt(float64(max(1, p.Past.Tasks))))
	}
	if n := float64(p.All.Tasks); n > 0 {
		return max(leastError, min(max(p.deviation(t), leastCV)/math.Sqrt(n)*(1+1/n), differ))
	}
	return differ
}

// deviation is the standard deviation of task times, as a fraction of their mean. Short tasks end first, so
// that of the ended ones is too small while many others run.
func (p *Phase) deviation(t Task) float64 {
	switch {
	case p.All.Tasks >= 4*p.Running:
		return t.Deviation
	case p.Past != nil:
		return max(t.Deviation, p.Past.Deviation())
	}
	return max(t.Deviation, defaultDeviation)
}

// measured reports whether any task of a job, or of the last job with its name, was measured.
func (j *Job) measured() bool {
	for i := range j.Phases {
		if j.Phases[i].All.Tasks > 0 || j.Phases[i].Past != nil {
			return true
		}
	}
	return false
}

// predictRanges sets the ranges of the jobs with a known end. The spread is by the law of propagation of
// uncertainty for independent causes (JCGM 100:2008, 5.1.2).
func (c *Cluster) predictRanges(jobs []Job, f Forecast) {
	var all [2]others
	for i := range f {
		for phase := range all {
			work := f[i].Work[phase]
			all[phase].work += work
			all[phase].uncertain.add(work * jobs[i].Phases[phase].meanError(f[i].Tasks[phase]))
		}
	}
	for i := range f {
		j, e := &jobs[i], &f[i]
		e.Measured = j.measured()
		if e.End != Never && (e.Measured || e.TasksLeft == [2]int{}) {
			e.Range = c.spreadOf(j, e, &all).around(c.Now, e.End)
		}
	}
}

// spreadOf adds up what is uncertain about a job's end.
func (c *Cluster) spreadOf(j *Job, e *Estimate, all *[2]others) spread {
	var s spread
	s.add(modelError * (e.End - c.Now).Seconds())
	s.add(closeError * c.Overheads.Close.Seconds())
	ends := [2]time.Duration{e.MapsEnd, e.End - c.Overheads.Close}
	begins := [2]time.Duration{c.Now, e.ShuffleEnd}
	if j.Upcoming != nil {
		ends, begins = [2]time.Duration{e.End, e.End}, [2]time.Duration{c.Now, c.Now}
	} else {
		s.add(shuffleError * (e.ShuffleEnd - e.MapsEnd).Seconds())
	}
	for phase := range ends {
		if e.TasksLeft[phase] > 0 {
			c.spreadPhase(&s, j, e, phase, (ends[phase] - begins[phase]).Seconds(), &all[phase])
		}
	}
	return s
}

// spreadPhase adds what is uncertain about a phase that takes span seconds from its begin: the mean of its
// task times, the sum of the times of the tasks left, the last of them, and the work of other jobs
// for which it waits.
func (c *Cluster) spreadPhase(s *spread, j *Job, e *Estimate, phase int, span float64, all *others) {
	p, t, left := &j.Phases[phase], e.Tasks[phase], e.TasksLeft[phase]
	slots := float64(max(1, min(left, c.Slots[phase])))
	alone := min(span, e.Work[phase]/slots)
	s.add(alone * p.meanError(t))
	task, deviation, last := t.Time.Seconds(), p.deviation(t), min(left, int(slots))
	s.add(task * deviation * maximumDeviation(last))
	s.add(task * skew(deviation, last))
	if left > last {
		used := min(slots, max(1, e.Work[phase]/max(span, task)))
		s.add(task * deviation * math.Sqrt(float64(left)) / used)
		s.add(task * lastBegins) // the last tasks begin at any time within a task's time
	}
	if all.work > e.Work[phase] {
		wait := span - alone
		s.add(sharesDiffer * wait)
		*s += spread(wait*wait/(all.work*all.work)) * all.uncertain
	}
	s.add(p.overdue(t).Seconds())
}
