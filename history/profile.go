package history

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Profile is what a job that has ended tells of the next one of the same name.
type Profile struct {
	Job      wire.JobID
	Phases   [2]Sums // maps, reduces
	Read     int64   // bytes of input
	Shuffled int64   // bytes of map output
	Elapsed  time.Duration
	Reads    wire.Reads // of all its maps
}

// Sums is tasks that succeeded, and how long they took together.
type Sums struct {
	Sum
	Trackers map[string]*Sum
}

// On is what one tracker did of them.
func (s *Sums) On(tracker string) Sum {
	if t := s.Trackers[tracker]; t != nil {
		return *t
	}
	return Sum{}
}

// Sum is a number of tasks and how long they took together.
type Sum struct {
	Tasks   int
	Took    time.Duration
	squares float64 // of their seconds
	recent  float64 // seconds of one, of late
}

// Mean is how long one took, 0 if there is none.
func (s *Sum) Mean() time.Duration {
	if s.Tasks == 0 {
		return 0
	}
	return s.Took / time.Duration(s.Tasks)
}

// Deviation is by how much tasks differ from the mean, as a part of it: of so few that
// it cannot be told, usual is 0.3.
func (s *Sum) Deviation() float64 {
	const usual, few = 0.3, 3
	mean := s.Mean().Seconds()
	if s.Tasks < few || mean == 0 {
		return usual
	}
	return math.Sqrt(max(0, s.squares/float64(s.Tasks)-mean*mean)) / mean
}

// window is how many tasks Recent is about.
const window = 24

// Recent is how long one took of late: the first ones also start processes.
func (s *Sum) Recent() time.Duration { return time.Duration(s.recent * float64(time.Second)) }

// Count adds a task.
func (s *Sum) Count(took time.Duration) {
	s.Tasks++
	s.Took += took
	s.recent += (took.Seconds() - s.recent) / float64(min(s.Tasks, window))
	s.squares += took.Seconds() * took.Seconds()
}

// Add adds a task that ended on a tracker.
func (s *Sums) Add(tracker string, took time.Duration) {
	s.Count(took)
	t := s.Trackers[tracker]
	if t == nil {
		if s.Trackers == nil {
			s.Trackers = make(map[string]*Sum)
		}
		t = new(Sum)
		s.Trackers[tracker] = t
	}
	t.Count(took)
}

// Profile sums a Record up.
func (r *Record) Profile() *Profile {
	p := &Profile{Job: r.Job.ID, Read: r.Job.Read.Total, Shuffled: r.Job.Shuffled.Total, Elapsed: r.Job.Elapsed}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.State != wire.AttemptSucceeded || a.Took < 0 {
			continue
		}
		took := time.Duration(a.Took) * time.Millisecond
		switch a.Attempt.Task.Kind {
		case wire.Map:
			p.Phases[0].Add(a.Tracker, took)
			p.Reads.Add(a.Reads)
		case wire.Reduce:
			p.Phases[1].Add(a.Tracker, took)
		}
	}
	return p
}

// ReadProfile reads what a job that has ended tells, from the first of the files
// that is there.
func ReadProfile(f dfs.FS, files []string, job wire.JobID) (*Profile, error) {
	for _, name := range files {
		r, err := Read(f, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case r.Job.ID != job:
			return nil, fmt.Errorf("read history %s: %w: it is of %v", name, ErrNotHistory, r.Job.ID)
		}
		return r.Profile(), nil
	}
	return nil, fmt.Errorf("read history of %v: %w", job, fs.ErrNotExist)
}
