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
	successesPerFailure = 10 // on other trackers, to exclude a suspect
	maxSuspectPart      = 4
	minComparisonGap    = 100 * time.Millisecond // a comparison reads all attempts of the jobs
)

// minRunTime is how long an attempt must run to count as better than one that failed after took.
func minRunTime(took time.Duration) time.Duration { return 2*took + time.Second }

// streak is the failures of a phase on a tracker since the last success.
type streak struct {
	firstLaunch    int64         // when the first failed attempt was launched, in Unix milliseconds
	lastFailure    time.Duration // when the last attempt failed
	lastComparison time.Duration // when the last Comparison was made
	suspect        bool
	tasks          map[wire.TaskID]bool // failed tasks; no longer updated once suspect
	jobs           map[int]bool         // numbers of the failed tasks' jobs
}

// Suspect reports whether the tracker is suspect in a phase; see the package comment.
func (r *Record) Suspect(phase int) bool {
	s := r.streaks[phase]
	return s != nil && s.suspect
}

// Failure is a failed attempt.
type Failure struct {
	Task  wire.TaskID
	Began int64         // Unix milliseconds when it was launched
	Took  time.Duration // from launch to failure
}

// Failed adds a failure to the streak of a phase. It returns a Comparison if the tracker is suspect
// and the last comparison is long enough ago, else nil.
func (r *Record) Failed(phase int, f Failure, slots int, now time.Duration) *Comparison {
	if r.excluded {
		return nil // the attempt began before the exclusion
	}
	s := r.streaks[phase]
	if s == nil || now-s.lastFailure > blameWindow {
		s = &streak{firstLaunch: f.Began, lastComparison: now - minComparisonGap, tasks: make(map[wire.TaskID]bool), jobs: make(map[int]bool)}
		r.streaks[phase] = s
	}
	s.lastFailure, s.jobs[f.Task.Job.N] = now, true
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

// Comparison compares a suspect tracker with the attempts of the same jobs on other trackers.
type Comparison struct {
	streak            *streak
	phase             int
	failure           Failure // the latest
	usable            int     // usable trackers that would remain
	Succeeded, Failed int     // attempts on other trackers
}

// Jobs yields the numbers of running jobs with failures in the streak. The streak forgets other
// jobs.
func (c *Comparison) Jobs(running func(job int) bool) iter.Seq[int] {
	maps.DeleteFunc(c.streak.jobs, func(n int, _ bool) bool { return !running(n) })
	return maps.Keys(c.streak.jobs)
}

// MayExclude reports whether the tracker may be excluded. If too few trackers would remain, or
// too many are suspect, the caller need not compare attempts.
func (c *Comparison) MayExclude(others Others) bool {
	c.usable = others.usable
	return others.enoughRemain() && others.suspects[c.phase]+1 <= max(1, (others.usable+1)/maxSuspectPart)
}

// Since is the launch time, in Unix milliseconds, from which attempts are compared.
func (c *Comparison) Since() int64 { return c.streak.firstLaunch }

// AddEnded adds an ended attempt of the phase on another tracker. Only attempts that were launched
// since the streak began count, and only on trackers that are not suspect.
func (c *Comparison) AddEnded(on *Record, began int64, state wire.AttemptState) {
	switch {
	case began < c.streak.firstLaunch || on.Suspect(c.phase):
	case state == wire.AttemptSucceeded:
		c.Succeeded++
	case state == wire.AttemptFailed && !on.excluded:
		c.Failed++
	}
}

// AddRunning adds a running attempt of the phase, with the same conditions. It counts as succeeded
// if it has run much longer than the failed attempt.
func (c *Comparison) AddRunning(on *Record, began, now int64) {
	if began >= c.streak.firstLaunch && now-began > minRunTime(c.failure.Took).Milliseconds() && !on.Suspect(c.phase) {
		c.Succeeded++
	}
}

// StandsOut reports whether the tracker must be excluded because the same jobs succeed on other
// trackers, and returns the reason.
func (c *Comparison) StandsOut() (reason string, exclude bool) {
	if c.Succeeded < max(successesPerFailure*c.Failed, min(maxBlame, c.usable)) {
		return "", false
	}
	return fmt.Sprintf("at least %d %ss in a row failed there, the last one %v after its launch; other trackers run the same jobs well",
		len(c.streak.tasks), c.failure.Task.Kind, c.failure.Took), true
}
