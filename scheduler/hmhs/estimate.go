package hmhs

import (
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Speeds estimates the seconds of a job's task on a tracker: the job's normal time, times a
// factor of the job and the tracker. The factors of all trackers are 1 on average.
type Speeds struct {
	jobs     map[wire.JobID]int
	trackers map[string]int
	times    []float64 // by job: seconds of a task where the factor is 1
	factors  []float64 // by tracker: its mean over jobs
	pairs    []sample  // the measurements by job and tracker
}

// sample is the measurements of a job on a tracker.
type sample struct {
	job, tracker   int
	tasks, seconds float64
}

const (
	// priorTasks is the weight of a tracker's mean over all jobs, in tasks of a pair: variance
	// within a pair divided by variance between pairs. If jobs differ by tracker, a task of the
	// pair says more than other jobs' tasks; if not, trusting it costs little.
	priorTasks = 0.5
	// fitRounds is the number of rounds of the fit. They reach a few per cent, which is less
	// than the differences among tasks of one job.
	fitRounds = 20
)

// Estimate fits times of jobs and factors of trackers alternately. A job's time is its mean
// task divided by the factors of its trackers; a tracker's factor is the mean of its tasks
// divided by their jobs' times, 1 on average. The residual is the pair's own factor. measured
// comes from a Snapshot in normal form. O(J·M) for J jobs and M trackers.
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
		samples[i] = sample{job, tracker, tasks, min(max(m.Seconds, minSeconds*tasks), maxSeconds*tasks)}
	}
	s.times = make([]float64, len(s.jobs))
	s.fit(samples)
	s.pairs = make([]sample, len(s.times)*len(s.factors))
	for _, m := range samples {
		s.pairs[m.job*len(s.factors)+m.tracker] = m
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

// Time returns the seconds of a job's task at factor 1. ok is false if none has ended.
func (s *Speeds) Time(job wire.JobID) (seconds float64, ok bool) {
	i, ok := s.jobs[job]
	if !ok {
		return 0, false
	}
	return s.times[i], true
}

// Factor returns the factor of a job's tasks on a tracker: the measurement, shrunk towards the
// tracker's mean with the weight of priorTasks; 1 if nothing is known.
func (s *Speeds) Factor(job wire.JobID, tracker string) float64 {
	t, ok := s.trackers[tracker]
	if !ok {
		return 1
	}
	i, ok := s.jobs[job]
	if !ok {
		return s.factors[t]
	}
	pair := s.pairs[i*len(s.factors)+t]
	return (pair.seconds/s.times[i] + priorTasks*s.factors[t]) / (pair.tasks + priorTasks)
}
