// Package health decides when the leader excludes a task tracker, which then gets no work for a
// time, and when the leader readmits it. It has a [Record] of failures and successes for each
// tracker. Package core reports attempts to it, supplies the attempts to compare, proposes
// exclusions to the log, and reports what the log accepts.
//
// # Exclusion
//
// A tracker is excluded for one of three reasons:
//
//   - Blame. A failure counts against a tracker when its task then succeeds on another tracker.
//     maxBlame such failures within blameWindow exclude the tracker, if they are more than
//     twice the average of the others. So a job that fails at random everywhere excludes no
//     tracker.
//   - A streak. A tracker is suspect if minStreak different tasks of a phase failed there
//     without a success in between. They must be more than twice its slots, so that it did not
//     get them all at the same time. The leader then compares it with attempts of the same
//     jobs on trackers that are not suspect, launched since the streak began. It is excluded
//     if enough of these succeeded or ran much longer than the failed ones, and at most one in
//     successesPerFailure failed. If more than one tracker in maxSuspectPart is suspect, the
//     jobs are the likely cause, and none is excluded.
//   - Fetches. It could not fetch map outputs from more than half of the trackers. Or more than
//     half of them could not fetch from it, or one that reaches half of all ([Fetches]).
//
// # Readmission
//
// An exclusion lasts firstExclusion. The next one lasts twice as long, unless an attempt that was
// launched after the last one has succeeded on the tracker. A pardon ends an exclusion early. So does
// package core (Expire) if a task has failed on all trackers in service: they may all be sick, and the
// excluded one may have healed.
//
// When an exclusion ends without a pardon, the tracker is on probation: it runs one attempt at a time
// until one succeeds. A failure excludes it again. [OfJob] has the exclusions from single jobs.
//
// A tracker that stops using a disk is pardoned: attempts launched before may have failed because
// of that disk, so their failures no longer count, and an exclusion ends. At most one pardon is
// given in blameWindow, since disks that fail again and again are the tracker's fault.
//
// # Calls
//
//	an attempt succeeds               Succeeded
//	an attempt fails                  Failed, if Counts. If it returns a Comparison: Jobs,
//	                                  MayExclude, AddEnded and AddRunning for the attempts of
//	                                  these jobs, then StandsOut
//	its task succeeds elsewhere       Blame; if it returns true: MuchWorse
//	an attempt fails on probation     FailsProbation
//	a fetch fails                     Fetches.Fail; if one tracker is at fault: Fetches.MayExclude
//	the tracker stops using a disk    DisksDropped; if it returns true: Pardon
//	an exclusion is proposed          Length; its end, except by a pardon: Expire
//	the log applies it, or its end    ExclusionChanged
//	the proposal is dropped           ExclusionDropped
//
// # Invariants
//
//	H1  Each exclusion leaves at least half of the trackers, and one of them usable ([Others]).
//	    Those that drain, are unhealthy, or that operators exclude count as excluded.
//	H2  An attempt that was launched before a pardon never counts against a tracker. Blame
//	    checks this itself; the caller calls Counts before Failed.
//	H3  An exclusion or its end clears the record: earlier failures no longer count.
//	H4  The order in which attempts, jobs or trackers are added to a comparison does not matter.
//
// [Losses] lists lost trackers, for display.
//
// A time.Duration is a time of the caller's clock, which never goes back. Unix milliseconds are from
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
	firstExclusion   = 10 * time.Minute
	longestExclusion = 8 * firstExclusion
)

// Record holds the failures that count against a tracker. Fields that every success reads come
// first.
type Record struct {
	exclusionChanged time.Duration // when it was last excluded or readmitted
	exclusions       int           // exclusions since an attempt last succeeded
	streaks          [2]*streak    // by phase
	excluded         bool          // according to the log
	expires          bool          // its exclusion ends, and not by a pardon
	probation        bool          // it was excluded, and no attempt launched since has succeeded
	pardonPending    bool          // a proposed exclusion must end at once
	pardoned         time.Duration // when it was last pardoned
	disksDropped     int           // how often its process stopped using a disk, or unknown
	blame            []time.Duration
}

// unknown is disksDropped of a tracker that has not reported it.
const unknown = math.MinInt

// New makes the Record of a tracker without known attempts.
func New(excluded bool) Record {
	const longAgo = -math.MaxInt64
	return Record{excluded: excluded, exclusionChanged: longAgo, pardoned: longAgo, disksDropped: unknown}
}

// Excluded reports whether the log excludes the tracker.
func (r *Record) Excluded() bool { return r.excluded }

// Counts reports whether the failure of an attempt launched at this time counts.
func (r *Record) Counts(launched time.Duration) bool { return launched > r.pardoned }

// Succeeded ends the streak of a phase. If the attempt was launched since the last exclusion, the
// next exclusion is short again, and a probation ends. It reports whether one did.
func (r *Record) Succeeded(phase int, launched time.Duration) (probationEnded bool) {
	if launched > r.exclusionChanged || r.tried(launched) {
		r.exclusions, probationEnded, r.probation = 0, r.probation, false
	}
	if r.streaks[phase] != nil {
		r.streaks[phase] = nil
	}
	return probationEnded
}

// Expire says that the exclusion ends, and not by a pardon: the tracker is then on probation.
func (r *Record) Expire() { r.expires = true }

// OnProbation reports whether the tracker runs one attempt at a time.
func (r *Record) OnProbation() bool { return r.probation }

// EndProbation lets the tracker run as many attempts as it has slots.
func (r *Record) EndProbation() { r.probation = false }

// FailsProbation reports whether the failure of an attempt excludes a tracker on probation again.
func (r *Record) FailsProbation(launched time.Duration, others Others) bool {
	return r.tried(launched) && others.enoughRemain()
}

// tried reports whether an attempt was launched on probation, perhaps in the Step that began it. Times
// of launches are known to the millisecond.
func (r *Record) tried(launched time.Duration) bool {
	return r.probation && launched >= r.exclusionChanged-time.Millisecond
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

// blamed counts the failures that count against the tracker now.
func (r *Record) blamed(now time.Duration) int {
	r.blame = slices.DeleteFunc(r.blame, func(at time.Duration) bool { return now-at > blameWindow })
	return len(r.blame)
}

// MuchWorse reports whether the tracker must be excluded because more failures count against it
// than against the others, and returns the reason. last is the task of the latest failure.
func (r *Record) MuchWorse(others Others, last wire.TaskID, now time.Duration) (reason string, worse bool) {
	blame := r.blamed(now)
	if r.excluded || !others.enoughRemain() || blame*others.usable <= 2*others.blame {
		return "", false
	}
	return fmt.Sprintf("%d attempts failed there within %v and their tasks then succeeded on other trackers; the last one was of %v",
		blame, blameWindow, last), true
}

// Length is how long the tracker's next exclusion lasts.
func (r *Record) Length() time.Duration {
	return min(firstExclusion<<min(r.exclusions, 8), longestExclusion)
}

// Remaining is the rest of an exclusion; until and now are in Unix milliseconds. It is at most
// longestExclusion, in case the clock has jumped back.
func Remaining(until, now int64) time.Duration {
	return min(time.Duration(until-now)*time.Millisecond, longestExclusion)
}

// ExclusionChanged records that the log excluded the tracker or readmitted it. It reports whether
// the exclusion must end at once because of a pardon; it then does not lengthen the next one.
func (r *Record) ExclusionChanged(excluded bool, now time.Duration) (readmit bool) {
	readmit = excluded && r.pardonPending
	if excluded && !readmit {
		r.exclusions++
	}
	r.probation, r.expires = r.expires && !excluded, false
	r.excluded, r.pardonPending, r.exclusionChanged = excluded, false, now
	r.clear()
	return readmit
}

// ExclusionDropped records that a proposed exclusion will not come. A pending pardon does not hold
// for the next one.
func (r *Record) ExclusionDropped() { r.pardonPending = false }

// clear forgets all failures.
func (r *Record) clear() { r.blame, r.streaks = nil, [2]*streak{} }

// DisksDropped records how often the tracker's process stopped using a disk, and reports whether
// that pardons the tracker. The first number never does: an earlier leader or process had these
// disks.
func (r *Record) DisksDropped(n int, now time.Duration) bool {
	more := r.disksDropped != unknown && n > r.disksDropped
	r.disksDropped = max(r.disksDropped, n)
	return more && now >= r.pardoned+blameWindow
}

// Pardon makes failures of attempts that were launched before now not count. It reports whether
// the tracker must be readmitted. A proposed exclusion ends as soon as the log applies it.
func (r *Record) Pardon(proposed bool, now time.Duration) (readmit bool) {
	r.pardoned, r.expires, r.probation = now, false, false
	r.clear()
	if r.excluded {
		r.exclusions = max(0, r.exclusions-1) // a pardoned exclusion does not lengthen the next
		return true
	}
	r.pardonPending = proposed
	return false
}

// Others summarizes the trackers with which one tracker is compared.
type Others struct {
	all, idle int    // number of trackers, and of those without work now or soon
	usable    int    // number of trackers with work that are usable
	blame     int    // failures that count against trackers with work
	suspects  [2]int // number of suspect trackers, by phase
}

// Add adds a tracker. idle means that it gets no work now or soon; usable means that it has slots
// and a connection.
func (o *Others) Add(r *Record, idle, usable bool, now time.Duration) {
	o.all++
	for phase := range o.suspects {
		if r.Suspect(phase) {
			o.suspects[phase]++
		}
	}
	if idle {
		o.idle++
		return
	}
	o.blame += r.blamed(now)
	if usable {
		o.usable++
	}
}

// enoughRemain reports whether enough trackers remain without the compared one: at least half of
// all, and one that is usable.
func (o *Others) enoughRemain() bool { return o.usable > 0 && 2*(o.idle+1) <= o.all+1 }
