// Package health decides when a task tracker is excluded, which means that it is given no
// work for a time, and when it is readmitted. It knows a tracker by what has failed and
// succeeded there: a [Record] for each. Package core tells it, finds what it asks to compare,
// proposes exclusions to the log and reports what the log says.
//
// # Excluded
//
// A tracker is excluded for one of two reasons:
//
//   - Blame. A failure counts against a tracker when the same task then succeeds on another
//     one. The tracker is excluded for maxBlame of these within blameWindow, if they are
//     more than twice what the others have on average: a job that fails at random
//     everywhere excludes no tracker.
//   - A streak. A tracker is suspect if it has failed minStreak different tasks of a phase
//     without one success between, and more than twice as many as it has slots, so that they
//     were not given to it all at once. It is excluded at once if it stands out: attempts of
//     the same jobs that were launched since on trackers that are not suspect have
//     succeeded, or have run far longer than its own took to fail, and at most one in
//     survivors has failed. If more than one tracker in suspectPart is suspect, the jobs are
//     taken to be at fault.
//
// # Readmitted
//
// An exclusion lasts for the time exclusion, and for twice as long each time until the
// tracker has succeeded in something that was launched since. It ends early for a pardon.
//
// A tracker that leaves a disk alone is pardoned: what was launched before may have failed
// for that disk, so it no longer counts, and an exclusion ends. This happens once in
// blameWindow: disks that fail again and again are the tracker's fault.
//
// # Who calls what
//
//	an attempt has succeeded           Succeeded
//	an attempt has failed              Failed, if Counts says so. It opens a Case if the tracker
//	                                   is to be compared:
//	                                   Jobs, Open, then Ended and Runs for the attempts of
//	                                   these jobs, and StandsOut
//	its task succeeds elsewhere        Blame, and MuchWorse if that says so
//	the tracker leaves a disk alone    LeftDisks, and Pardon if that says so
//	an exclusion is proposed           Length
//	the log has it, or its end         ExclusionChanged
//	the log will not have it           ExclusionDropped
//
// # Invariants
//
//	H1  At least half of the trackers remain, and one that is usable ([Others]).
//	H2  What was launched before a pardon never counts against a tracker. Blame sees to that
//	    itself; the caller asks Counts before Failed.
//	H3  An exclusion or its end clears the record: what failed before counts no more.
//	H4  Within a comparison, the order in which attempts, jobs or trackers are told of does
//	    not matter.
//
// [Losses] is the trackers that were lost, for display.
//
// Times are on the caller's clock, which does not go back. Those in Unix milliseconds are by
// a wall clock, which may jump. Nothing here is safe for concurrent use.
package health

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

const (
	maxBlame         = 3
	blameWindow      = 10 * time.Minute
	exclusion        = 10 * time.Minute
	longestExclusion = 8 * exclusion
)

// Record is what counts against a tracker, and for it. What is looked at whenever a task
// succeeds comes first.
type Record struct {
	exclusionChanged time.Duration // when it was excluded or readmitted last
	exclusions       int           // times excluded since it last succeeded
	streaks          [2]*streak    // by phase
	pardoned         time.Duration // when it was last
	excluded         bool          // as the log has it
	pardonPending    bool          // an exclusion that is not in the log yet is to end at once
	disksDropped     int           // how often its process has left a disk alone, or unknown
	blame            []time.Duration
}

// unknown is the disksLeft of a tracker that has not said.
const unknown = math.MinInt

// New makes the Record of a tracker of which nothing is known but whether it is excluded.
func New(excluded bool) Record {
	const longAgo = -math.MaxInt64
	return Record{excluded: excluded, exclusionChanged: longAgo, pardoned: longAgo, disksDropped: unknown}
}

// Excluded reports whether the log excludes the tracker.
func (r *Record) Excluded() bool { return r.excluded }

// Counts reports whether a failure of an attempt that was launched at a time counts.
func (r *Record) Counts(launched time.Duration) bool { return launched > r.pardoned }

// Succeeded ends the streak of a phase. The next exclusion is a short one if the attempt
// was launched since the last one.
func (r *Record) Succeeded(phase int, launched time.Duration) {
	if launched > r.exclusionChanged {
		r.exclusions = 0
	}
	if r.streaks[phase] != nil {
		r.streaks[phase] = nil
	}
}

// Blame counts a failed attempt if its task has now succeeded on another tracker. It reports
// whether the caller must compare the tracker with the others.
func (r *Record) Blame(launched, now time.Duration) bool {
	if !r.Counts(launched) {
		return false
	}
	r.blame = append(r.blame, now)
	return r.blamed(now) >= maxBlame
}

// blamed is how many failures count against the tracker now.
func (r *Record) blamed(now time.Duration) int {
	r.blame = slices.DeleteFunc(r.blame, func(at time.Duration) bool { return now-at > blameWindow })
	return len(r.blame)
}

// MuchWorse reports whether the tracker is to be excluded because more failures count against
// it than against the others, and the reason. last is the task that was blamed last.
func (r *Record) MuchWorse(others Others, last wire.TaskID, now time.Duration) (reason string, worse bool) {
	blame := r.blamed(now)
	if r.excluded || !others.enoughRemain() || blame*others.usable <= 2*others.blame {
		return "", false
	}
	return fmt.Sprintf("%d attempts failed there within %v whose tasks then succeeded on other trackers, the last of %v",
		blame, blameWindow, last), true
}

// Length is how long the tracker's next exclusion lasts.
func (r *Record) Length() time.Duration {
	return min(exclusion<<min(r.exclusions, 8), longestExclusion)
}

// Left is what is left of an exclusion, in Unix milliseconds. A clock that jumps ends it at
// the latest as if it began now.
func Remaining(until, now int64) time.Duration {
	return min(time.Duration(until-now)*time.Millisecond, longestExclusion)
}

// ExclusionChanged follows the log, which has excluded the tracker or readmitted it. It says whether
// the exclusion is to end at once; such a one does not lengthen the next.
func (r *Record) ExclusionChanged(excluded bool, now time.Duration) (readmit bool) {
	readmit = excluded && r.pardonPending
	if excluded && !readmit {
		r.exclusions++
	}
	r.excluded, r.pardonPending, r.exclusionChanged = excluded, false, now
	r.clear()
	return readmit
}

// ExclusionDropped says that an exclusion that was proposed is not to come: the next one is not the
// one that was spared.
func (r *Record) ExclusionDropped() { r.pardonPending = false }

// clear has what counts against the tracker count no more.
func (r *Record) clear() { r.blame, r.streaks = nil, [2]*streak{} }

// LeftDisks notes how often the tracker's process has left a disk alone, and reports whether
// that pardons the tracker. The first number never does: an earlier leader has pardoned for
// these disks, or they are of an earlier process.
func (r *Record) DisksDropped(times int, now time.Duration) bool {
	more := r.disksDropped != unknown && times > r.disksDropped
	r.disksDropped = max(r.disksDropped, times)
	return more && now >= r.pardoned+blameWindow
}

// Pardon has what was launched before now count no more. It says whether the tracker is to
// be readmitted. An exclusion that was proposed is spared: it ends when the log has it.
func (r *Record) Pardon(proposed bool, now time.Duration) (readmit bool) {
	r.pardoned = now
	r.clear()
	if r.excluded {
		r.exclusions = max(0, r.exclusions-1) // the next exclusion is no longer for this one
		return true
	}
	r.pardonPending = proposed
	return false
}

// Others is the trackers with which one is compared.
type Others struct {
	all, idle int    // trackers, and those that are given no work, or are about to be
	usable    int    // that are given work and are usable
	blame     int    // failures that count against those that are given work
	suspects  [2]int // by phase
}

// Add counts another tracker in. out says that it is given no work or is about to be given
// none, usable that it has slots and can be spoken to.
func (o *Others) Add(r *Record, out, usable bool, now time.Duration) {
	o.all++
	for phase := range o.suspects {
		if r.Suspect(phase) {
			o.suspects[phase]++
		}
	}
	if out {
		o.idle++
		return
	}
	o.blame += r.blamed(now)
	if usable {
		o.usable++
	}
}

// enoughRemain reports whether enough trackers remain without the one that is compared: at least half
// of all, and one that is fit.
func (o *Others) enoughRemain() bool { return o.usable > 0 && 2*(o.idle+1) <= o.all+1 }
