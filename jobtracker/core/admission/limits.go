package admission

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/quota"
	jobsettings "github.com/quernmr/quern/jobtracker/core/settings"
	"github.com/quernmr/quern/wire"
)

// Limits are the administrator's limits; 0 means no limit. Job trackers may have different ones:
// those of the leader hold.
type Limits struct {
	quota.Limits
	Setups        int // setup attempts that run at a time
	TrackerSetups int // of these, on each task tracker
	Effects       int // file operations under way, see the core's commands; then submissions are refused
	Maximum       Maximum
}

// Maximum is the most that a job may ask; 0 means no limit. A job that asks for no limit of its own
// gets the maximum.
type Maximum struct {
	Memory    int64         // bytes of a task's attempt
	Processes int           // of a task's attempt
	Tasks     int           // maps and reduces of a job
	Lifetime  time.Duration // from the job's submission to its end
}

// RetryAfter is how long a client should wait before it repeats a request that was [Busy].
const RetryAfter = 5 * time.Second

// ErrBusy is the sentinel of [Busy].
var ErrBusy = errors.New("too many requests")

// Busy refuses a request that exceeds a limit for now. The same request may succeed later.
type Busy struct {
	Reason error
	Limit  string // its name, such as "user-jobs"
	Max    int
}

func (b *Busy) Error() string { return fmt.Sprintf("not accepted for now: %v", b.Reason) }

// Unwrap makes a Busy match ErrBusy and its reason.
func (b *Busy) Unwrap() []error { return []error{ErrBusy, b.Reason} }

// CheckEffects returns a *Busy if file operations under way reach the limit.
func (l *Limits) CheckEffects(underWay int) error {
	if l.Effects > 0 && underWay >= l.Effects {
		reason := fmt.Errorf("file operations of the job tracker under way: %d, at most %d (effects)", underWay, l.Effects)
		return &Busy{Reason: reason, Limit: "effects", Max: l.Effects}
	}
	return nil
}

// Check returns why a submission asks for more than the maximum. It cannot check the number of
// maps, see CheckTasks.
func (m *Maximum) Check(s *wire.Submission) error {
	for i := range s.Plan.Jobs {
		j := &s.Plan.Jobs[i]
		if err := m.checkJob(j); err != nil {
			return fmt.Errorf("%w: job %s: %w", ErrBadSubmission, j.Name, err)
		}
	}
	return nil
}

func (m *Maximum) checkJob(j *wire.JobPlan) error {
	asked := jobsettings.Of(j)
	for _, x := range []struct {
		kind  string
		bytes int64
	}{{"map", asked.Maps.MaxMemory}, {"reduce", asked.Reduces.MaxMemory}} {
		if m.Memory > 0 && x.bytes > m.Memory {
			return fmt.Errorf("mapreduce.%s.memory.mb is %d, at most %d (task-memory)", x.kind, x.bytes>>20, m.Memory>>20)
		}
	}
	if m.Processes > 0 && asked.MaxProcesses > m.Processes {
		return fmt.Errorf("quern.task.processes is %d, at most %d (task-processes)", asked.MaxProcesses, m.Processes)
	}
	return m.CheckTasks(0, j.Reduces)
}

// CheckTasks returns why a job has too many tasks.
func (m *Maximum) CheckTasks(maps, reduces int) error {
	switch {
	case m.Tasks == 0 || maps+reduces <= m.Tasks:
		return nil
	case reduces > m.Tasks:
		return fmt.Errorf("it has %d reduces, at most %d tasks (job-tasks)", reduces, m.Tasks)
	default:
		return fmt.Errorf("it has %d maps and %d reduces, at most %d tasks (job-tasks): let each map read more (mapreduce.input.fileinputformat.split.minsize)", maps, reduces, m.Tasks)
	}
}

// Cap lowers a job's settings to the maximum.
func (m *Maximum) Cap(s jobsettings.Settings) jobsettings.Settings {
	s.Maps.MaxMemory, s.Reduces.MaxMemory = capped(s.Maps.MaxMemory, m.Memory), capped(s.Reduces.MaxMemory, m.Memory)
	s.MaxProcesses = capped(s.MaxProcesses, m.Processes)
	return s
}

// capped returns the lower of two limits; a limit of 0 is none.
func capped[T int | int64](asked, most T) T {
	if most > 0 && (asked == 0 || asked > most) {
		return most
	}
	return asked
}
