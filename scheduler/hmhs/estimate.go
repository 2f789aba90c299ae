package hmhs

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Speeds says how long a job's task takes on a tracker: its normal time, which is the
// mean over trackers that are equally fast for it, times a factor of the two.
type Speeds struct {
	times    map[wire.JobID]float64 // seconds of a task where the factor is 1
	trackers map[string]float64     // mean factor of a tracker over jobs
	pairs    map[pair]sample
}

type pair struct {
	job     wire.JobID
	tracker string
}

type sample struct {
	tasks float64
	ratio float64 // mean time of its tasks by the job's normal time
}

const (
	// priorTasks is how many tasks of a job on a tracker weigh as much as what the
	// tracker does for all jobs.
	priorTasks = 2
	// fitRounds of the alternating fit are enough for a few per cent, which is less
	// than tasks of one job differ among themselves.
	fitRounds = 20
)

// Estimate fits times of jobs and factors of trackers to what was measured, by turns:
// a job's time is its mean task by the factors of where it ran, a tracker's factor the
// mean over its tasks of their times by their jobs'. Factors of trackers are 1 on
// average. What the two leave unexplained is the pair's own. It takes a Snapshot's
// Measured as Normal leaves it. O(len(measured)).
func Estimate(measured []scheduler.Measured) *Speeds {
	s := &Speeds{make(map[wire.JobID]float64), make(map[string]float64), make(map[pair]sample)}
	for _, m := range measured {
		s.trackers[m.Tracker] = 1
	}
	for range fitRounds {
		s.fitTimes(measured)
		s.fitTrackers(measured)
	}
	mean := 0.0
	for _, id := range slices.Sorted(maps.Keys(s.trackers)) { // sums depend on the order
		mean += s.trackers[id] / float64(len(s.trackers))
	}
	for id := range s.trackers {
		s.trackers[id] /= mean
	}
	s.fitTimes(measured)
	for _, m := range measured {
		n := float64(m.Tasks)
		s.pairs[pair{m.Job, m.Tracker}] = sample{n, m.Seconds / n / s.times[m.Job]}
	}
	return s
}

func (s *Speeds) fitTimes(measured []scheduler.Measured) {
	tasks := make(map[wire.JobID]float64)
	clear(s.times)
	for _, m := range measured {
		s.times[m.Job] += m.Seconds / s.trackers[m.Tracker]
		tasks[m.Job] += float64(m.Tasks)
	}
	for job, n := range tasks {
		s.times[job] /= n
	}
}

func (s *Speeds) fitTrackers(measured []scheduler.Measured) {
	tasks := make(map[string]float64)
	clear(s.trackers)
	for _, m := range measured {
		s.trackers[m.Tracker] += m.Seconds / s.times[m.Job]
		tasks[m.Tracker] += float64(m.Tasks)
	}
	for id, n := range tasks {
		s.trackers[id] /= n
	}
}

// Time is the seconds of a job's task where the factor is 1; not ok if none has ended.
func (s *Speeds) Time(job wire.JobID) (seconds float64, ok bool) {
	seconds, ok = s.times[job]
	return seconds, ok
}

// Factor of a job's tasks on a tracker: what was measured, drawn towards the tracker's
// mean, which stands for priorTasks of its tasks; 1 where nothing is known.
func (s *Speeds) Factor(job wire.JobID, tracker string) float64 {
	prior, ok := s.trackers[tracker]
	if !ok {
		prior = 1
	}
	own := s.pairs[pair{job, tracker}]
	return (own.tasks*own.ratio + priorTasks*prior) / (own.tasks + priorTasks)
}
