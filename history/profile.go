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

// Profile summarizes an ended job, for estimates of the next job of the same name.
type Profile struct {
	Job      wire.JobID
	Phases   [2]Sums // maps, reduces
	Usual    [2]Usual
	Read     int64 // bytes of input
	Shuffled int64 // bytes of map output
	Elapsed  time.Duration
	Reads    wire.Reads // sum of all maps
}

// Sums is the number and total time of successful tasks, in total and per tracker.
type Sums struct {
	Sum
	Trackers map[string]*Sum
}

// On returns the sum of one tracker.
func (s *Sums) On(tracker string) Sum {
	if t := s.Trackers[tracker]; t != nil {
		return *t
	}
	return Sum{}
}

// Sum is a number of tasks and their total time.
type Sum struct {
	Tasks   int
	Took    time.Duration
	squares float64 // sum of the squares of their seconds
	recent  float64 // recent seconds per task
}

// Mean returns the average time of a task, 0 if there is none.
func (s *Sum) Mean() time.Duration {
	if s.Tasks == 0 {
		return 0
	}
	return s.Took / time.Duration(s.Tasks)
}

// Deviation returns the standard deviation relative to the mean. If there are fewer than
// three tasks, it returns 0.3, a usual value.
func (s *Sum) Deviation() float64 {
	const usual, few = 0.3, 3
	mean := s.Mean().Seconds()
	if s.Tasks < few || mean == 0 {
		return usual
	}
	return math.Sqrt(max(0, s.squares/float64(s.Tasks)-mean*mean)) / mean
}

// window is the number of tasks in the moving average of Recent.
const window = 24

// Recent returns a moving average of the tasks' times. It forgets the first tasks, which
// take longer because they start processes.
func (s *Sum) Recent() time.Duration { return time.Duration(s.recent * float64(time.Second)) }

// Count adds a task.
func (s *Sum) Count(took time.Duration) {
	s.Tasks++
	s.Took += took
	seconds := took.Seconds()
	s.recent += (seconds - s.recent) / float64(min(s.Tasks, window))
	s.squares += seconds * seconds
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

// Profile summarizes a Record.
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
	p.Usual = r.Usual
	for phase, bytes := range BytesEach(p.Read, r.Job.Maps.Total, p.Shuffled, r.Job.Reduces.Total) {
		if !p.Usual[phase].Known() { // of an older build
			p.Usual[phase] = Usual{}.After(&p.Phases[phase].Sum, bytes)
		}
	}
	return p
}

// ReadProfile reads a job's profile from the first existing file.
func ReadProfile(f dfs.FS, files []string, job wire.JobID) (*Profile, error) {
	for _, name := range files {
		r, err := Read(f, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case r.Job.ID != job:
			return nil, fmt.Errorf("read history %s: %w: it belongs to %v", name, ErrNotHistory, r.Job.ID)
		}
		return r.Profile(), nil
	}
	return nil, fmt.Errorf("read history of %v: %w", job, fs.ErrNotExist)
}
