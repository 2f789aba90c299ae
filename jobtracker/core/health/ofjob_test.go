package health

import (
	"slices"
	"testing"
	"time"
)

// TestFailedOn checks when a tracker is excluded from a job.
func TestFailedOn(t *testing.T) {
	for _, c := range []struct {
		failures int // the last one decides
		limits   JobLimits
		others   JobOthers
		want     bool
	}{
		{3, JobLimits{3, 33}, JobOthers{Usable: 9}, true},
		{2, JobLimits{3, 33}, JobOthers{Usable: 9}, false},
		{1, JobLimits{1, 33}, JobOthers{Usable: 9}, true},
		{3, JobLimits{3, 33}, JobOthers{Usable: 9, Failures: 13}, true}, // the average is less than 1.5
		{3, JobLimits{3, 33}, JobOthers{Usable: 9, Failures: 14}, false},
		{30, JobLimits{3, 33}, JobOthers{Usable: 9, Failures: 270}, false}, // it fails everywhere
		{3, JobLimits{3, 33}, JobOthers{Usable: 3}, true},
		{3, JobLimits{3, 33}, JobOthers{Usable: 2}, false}, // one of three, as in Hadoop
		{3, JobLimits{3, 34}, JobOthers{Usable: 2}, true},
		{3, JobLimits{3, 33}, JobOthers{Usable: 7, Excluded: 2}, true},
		{3, JobLimits{3, 33}, JobOthers{Usable: 6, Excluded: 3}, false},
		{3, JobLimits{3, 100}, JobOthers{Usable: 1, Excluded: 8}, true},
		{3, JobLimits{3, -1}, JobOthers{Usable: 1, Excluded: 8}, true},
		{3, JobLimits{3, -1}, JobOthers{Excluded: 9}, false}, // it would be the last
		{3, JobLimits{3, 0}, JobOthers{Usable: 9}, false},
	} {
		var o OfJob
		for range c.failures - 1 {
			o.FailedOn("t1", c.limits, func() JobOthers { return JobOthers{} })
		}
		if got := o.FailedOn("t1", c.limits, func() JobOthers { return c.others }); got != c.want {
			t.Errorf("%d failures, %+v, others %+v: excluded %v", c.failures, c.limits, c.others, got)
		}
	}
}

// TestJobProbation checks that exclusions from a job grow until an attempt succeeds on probation.
func TestJobProbation(t *testing.T) {
	var o OfJob
	limits, others := JobLimits{1, 33}, func() JobOthers { return JobOthers{Usable: 9} }
	now := time.Hour
	for i, minutes := range []time.Duration{10, 20, 40, 80, 80} {
		if !o.FailedOn("t1", limits, others) {
			t.Fatalf("after %d exclusions a failure does not exclude", i)
		}
		until := o.Exclude("t1", now)
		if until != now+minutes*time.Minute || o.ExcludedUntil("t1") != until || o.OnProbation("t1") {
			t.Errorf("exclusion %d ends after %v, want %v minutes", i, until-now, int(minutes))
		}
		o.SucceededOn("t1") // an attempt from before
		if o.FailedOn("t1", limits, others) || !slices.Equal(o.Excluded(), []string{"t1"}) || len(o.EndDue(until-1)) > 0 {
			t.Error("an excluded tracker is excluded again, or its exclusion ends too early")
		}
		if now = until; !slices.Equal(o.EndDue(now), []string{"t1"}) || o.Excluded() != nil || !o.OnProbation("t1") {
			t.Error("the exclusion does not end")
		}
	}
	o.SucceededOn("t1")
	if o.OnProbation("t1") || o.Failures("t1") != 0 {
		t.Error("a success does not end the probation")
	}
	if o.FailedOn("t1", limits, others); o.Exclude("t1", now) != now+firstExclusion {
		t.Error("after a success the next exclusion is not short")
	}
	if o.Forget("t1"); o.ExcludedUntil("t1") != 0 || o.OnProbation("t1") || len(o.EndDue(2*now)) > 0 {
		t.Error("the exclusion is not forgotten")
	}
}

// TestProbation checks when the probation of a tracker begins and ends, and when a failure counts.
func TestProbation(t *testing.T) {
	others := Others{all: 1, usable: 1}
	excludedFor := func(length time.Duration) *Record {
		r := New(false)
		r.ExclusionChanged(true, time.Hour)
		r.Expire()
		r.ExclusionChanged(false, time.Hour+length)
		return &r
	}
	const readmitted = time.Hour + firstExclusion
	r := excludedFor(firstExclusion)
	if !r.OnProbation() || !r.FailsProbation(readmitted, others) || r.FailsProbation(time.Hour, others) || r.FailsProbation(readmitted, Others{all: 1}) {
		t.Errorf("on probation %v; a failure of an attempt launched since does not count, or an earlier one counts, or it is the last tracker", r.OnProbation())
	}
	if r.Succeeded(0, time.Hour-1) || !r.OnProbation() || r.Length() != 2*firstExclusion {
		t.Error("a success from before the exclusion ends the probation")
	}
	if !r.Succeeded(1, readmitted) || r.OnProbation() || r.Length() != firstExclusion || r.Succeeded(1, readmitted) {
		t.Error("a success does not end the probation, once")
	}
	r = excludedFor(firstExclusion)
	if r.ExclusionChanged(true, readmitted); r.OnProbation() || r.Length() != 4*firstExclusion {
		t.Errorf("excluded again: on probation %v, the next exclusion would last %v", r.OnProbation(), r.Length())
	}
	if r.ExclusionChanged(false, 2*readmitted); r.OnProbation() {
		t.Error("it is on probation before the time of its exclusion is over")
	}
	r = excludedFor(firstExclusion)
	if r.Pardon(false, readmitted); r.OnProbation() {
		t.Error("it is on probation after a pardon")
	}
}
