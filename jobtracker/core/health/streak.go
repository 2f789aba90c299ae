package health

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/quernmr/quern/wire"
)

const (
	minStreak           = 4
	successesPerFailure = 10 // for each failure
	maxSuspectPart      = 4
	minComparisonGap    = 100 * time.Millisecond // at least, between looks at all attempts of jobs
)

// longEnough is how long an attempt must have run to be told from one that failed after a time.
func longEnough(took time.Duration) time.Duration { return 2*took + time.Second }

// streak is what a tracker has failed in a phase since it last succeeded there.
type streak struct {
	since          int64                // Unix milliseconds when the attempt was launched that failed first
	last           time.Duration        // when one failed last
	lastComparison time.Duration        // when the last Case was opened
	suspect        bool                 // the tracker is
	tasks          map[wire.TaskID]bool // until the tracker is suspect
	jobs           map[int]bool         // by their numbers
}

// Suspect reports whether the tracker fails all that it runs in a phase.
func (r *Record) Suspect(phase int) bool {
	s := r.streaks[phase]
	return s != nil && s.suspect
}

// Failure is an attempt that has failed.
type Failure struct {
	Task  wire.TaskID
	Began int64         // Unix milliseconds when it was launched
	Took  time.Duration // since then
}

// Failed counts a failure in the streak of a phase. It opens a Case if the tracker is suspect
// now and was not compared just before, else it returns nil.
func (r *Record) Failed(phase int, f Failure, slots int, now time.Duration) *Comparison {
	if r.excluded {
		return nil // the attempt had begun before
	}
	s := r.streaks[phase]
	if s == nil || now-s.last > blameWindow {
		s = &streak{since: f.Began, lastComparison: now - minComparisonGap, tasks: make(map[wire.TaskID]bool), jobs: make(map[int]bool)}
		r.streaks[phase] = s
	}
	s.last, s.jobs[f.Task.Job.N] = now, true
	if !s.suspect {
		s.tasks[f.Task] = true
		s.suspect = len(s.tasks) >= max(minStreak, 2*slots+1)
	}
	if !s.suspect || now-s.lastComparison < minComparisonGap {
		return nil
	}
	s.lastComparison = now
	return &Comparison{streak: s, phase: phase, failure: f}
}

// Case compares a suspect tracker with the attempts of the same jobs on others.
type Comparison struct {
	streak            *streak
	phase             int
	failure           Failure // the last one
	usable            int     // trackers that would remain
	Succeeded, Failed int     // attempts on the others
}

// Jobs yields the numbers of the jobs whose tasks the tracker fails, of those that go on. The
// streak forgets the others.
func (c *Comparison) Jobs(goesOn func(job int) bool) iter.Seq[int] {
	maps.DeleteFunc(c.streak.jobs, func(n int, _ bool) bool { return !goesOn(n) })
	return maps.Keys(c.streak.jobs)
}

// Open reports whether the tracker may be excluded at all, so that its jobs' attempts need be
// compared: not if too few trackers would remain, or too many are suspect.
func (c *Comparison) MayExclude(others Others) bool {
	c.usable = others.usable
	return others.enoughRemain() && others.suspects[c.phase]+1 <= max(1, (others.usable+1)/maxSuspectPart)
}

// Since is the time in Unix milliseconds after which attempts are compared.
func (c *Comparison) Since() int64 { return c.streak.since }

// Ended adds an attempt of the phase that has ended on a tracker: of those that were launched
// since the streak began, on a tracker that is not suspect.
func (c *Comparison) AddEnded(on *Record, began int64, state wire.AttemptState) {
	switch {
	case began < c.streak.since || on.Suspect(c.phase):
	case state == wire.AttemptSucceeded:
		c.Succeeded++
	case state == wire.AttemptFailed && !on.excluded:
		c.Failed++
	}
}

// Runs adds an attempt of the phase that runs on a tracker, likewise. It does well if it
// has run far longer than the failed one did.
func (c *Comparison) AddRunning(on *Record, began, now int64) {
	if began >= c.streak.since && now-began > longEnough(c.failure.Took).Milliseconds() && !on.Suspect(c.phase) {
		c.Succeeded++
	}
}

// StandsOut reports whether the tracker is to be excluded because the jobs that it fails do
// well elsewhere, and the reason.
func (c *Comparison) StandsOut() (reason string, does bool) {
	if c.Succeeded < max(successesPerFailure*c.Failed, min(maxBlame, c.usable)) {
		return "", false
	}
	return fmt.Sprintf("%d or more %ss in a row failed there, the last one %v after its launch, while others of the same jobs ran well on other trackers",
		len(c.streak.tasks), c.failure.Task.Kind, c.failure.Took), true
}
