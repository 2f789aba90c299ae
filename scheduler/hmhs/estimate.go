package hmhs

import (
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Speeds says how long a job's task takes on a tracker: its normal time, which is the
// mean over trackers that are equally fast for it, times a factor of the two.
type Speeds struct {
	jobs     map[wire.JobID]int
	trackers map[string]int
	times    []float64 // by job: seconds of a task where the factor is 1
	factors  []float64 // by tracker: its mean over jobs
	own      []sample  // by job and tracker
}

// sample is what a tracker did of a job.
type sample struct {
	job, tracker   int
	tasks, seconds float64
}

const (
	// priorTasks is how many tasks of a job on a tracker weigh as much as what the
	// tracker does for all jobs: the variance of tasks of one pair over that of pairs.
	// One task says more of its pair than the tracker's other jobs do where jobs have
	// affinities; where they have none, believing it costs little.
	priorTasks = 0.5
	// fitRounds of the alternating fit are enough for a few per cent, which is less
	// than tasks of one job differ among themselves.
	fitRounds = 20
)

// Estimate fits times of jobs and factors of trackers to what was measured, by turns:
// a job's time is its mean task by the factors of where it ran, a tracker's factor the
// mean over its tasks of their times by their jobs'. Factors of trackers are 1 on
// average. What the two leave unexplained is the pair's own. It takes a Snapshot's
// Measured as Normal leaves it. O(J·M) for J jobs and M trackers measured.
func Estimate(measured []scheduler.Measured) *Speeds {
	s := &Speeds{jobs: make(map[wire.JobID]int), trackers: make(map[string]int)}
	samples := make([]sample, len(measured))
	for i, m := range measured {
		job, ok := s.jobs[m.Job]
		if !ok {
			job = len(s.jobs)
			s.jobs[m.Job] = job
		}
		tracker, ok := s.trackers[m.Tracker]
		if !ok {
			tracker = len(s.trackers)
			s.trackers[m.Tracker] = tracker
			s.factors = append(s.factors, 1)
		}
		tasks := float64(m.Tasks)
		samples[i] = sample{job, tracker, tasks, min(max(m.Seconds, leastSeconds*tasks), mostSeconds*tasks)}
	}
	s.times = make([]float64, len(s.jobs))
	s.fit(samples)
	s.own = make([]sample, len(s.times)*len(s.factors))
	for _, m := range samples {
		s.own[m.job*len(s.factors)+m.tracker] = m
	}
	return s
}

func (s *Speeds) fit(samples []sample) {
	jobTasks, trackerTasks := make([]float64, len(s.times)), make([]float64, len(s.factors))
	for _, m := range samples {
		jobTasks[m.job] += m.tasks
		trackerTasks[m.tracker] += m.tasks
	}
	for range fitRounds {
		s.fitTimes(samples, jobTasks)
		clear(s.factors)
		for _, m := range samples {
			s.factors[m.tracker] += m.seconds / s.times[m.job] / trackerTasks[m.tracker]
		}
	}
	mean := 0.0
	for _, f := range s.factors {
		mean += f / float64(len(s.factors))
	}
	for t := range s.factors {
		s.factors[t] /= mean
	}
	s.fitTimes(samples, jobTasks)
}

func (s *Speeds) fitTimes(samples []sample, tasks []float64) {
	clear(s.times)
	for _, m := range samples {
		s.times[m.job] += m.seconds / s.factors[m.tracker] / tasks[m.job]
	}
}

// Time is the seconds of a job's task where the factor is 1; not ok if none has ended.
func (s *Speeds) Time(job wire.JobID) (seconds float64, ok bool) {
	i, ok := s.jobs[job]
	if !ok {
		return 0, false
	}
	return s.times[i], true
}

// Factor of a job's tasks on a tracker: what was measured, drawn towards the tracker's
// mean, which stands for priorTasks of its tasks; 1 where nothing is known.
func (s *Speeds) Factor(job wire.JobID, tracker string) float64 {
	t, ok := s.trackers[tracker]
	if !ok {
		return 1
	}
	i, ok := s.jobs[job]
	if !ok {
		return s.factors[t]
	}
	own := s.own[i*len(s.factors)+t]
	return (own.seconds/s.times[i] + priorTasks*s.factors[t]) / (own.tasks + priorTasks)
}
