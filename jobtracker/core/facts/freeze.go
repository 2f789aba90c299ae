package facts

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// View is Facts as they were at one moment. It never changes, and any goroutine may read it.
//
// A View shares all entries with Facts: jobs, submissions, trackers, drains. So none of these may
// change in place. Facts replace a tracker or a drain by a changed copy. A job and a submission
// point to their state: change and changeSubmission copy a state that is older than the last
// Freeze, and return the entry with the copy.
type View struct {
	head        factsSnapshot // without the lists below
	trackers    []*Tracker    // in no order
	submissions []frozenSubmission
	jobs        []frozenJob // by number
}

type frozenSubmission struct {
	*Submission
	*submissionState // hides the current state of the Submission
}

type frozenJob struct {
	*Job
	*jobState // hides the current state of the Job
}

// Freeze returns a View of Facts. It visits all jobs, submissions and trackers, but copies only
// pointers.
func (f *Facts) Freeze() *View {
	f.freezes++
	v := &View{
		head: factsSnapshot{
			Index: f.index, Epoch: f.epoch, Leader: f.leader, Boot: f.boot, Incarnations: f.incarnations,
			LastJob: f.lastJob, Ended: slices.Clone(f.ended), Scheduled: f.scheduling, Pooled: f.pools,
			Drains: f.drains, OperatorChanges: f.operatorChanges, OperatorExclusions: f.OperatorExclusions(),
		},
		trackers:    slices.AppendSeq(make([]*Tracker, 0, len(f.trackers)), maps.Values(f.trackers)),
		submissions: make([]frozenSubmission, 0, len(f.submissions)),
		jobs:        make([]frozenJob, 0, len(f.numbers)),
	}
	for _, name := range f.AllDraining() {
		d := f.draining[name]
		v.head.Draining = append(v.head.Draining, drainSnapshot{name, d.N, d.Process, d.IdleSteps})
	}
	for _, s := range f.submissions {
		v.submissions = append(v.submissions, frozenSubmission{s, s.submissionState})
	}
	for _, n := range f.numbers {
		v.jobs = append(v.jobs, frozenJob{f.jobs[n], f.jobs[n].jobState})
	}
	return v
}

// change returns a job with a state that apply may change.
func (f *Facts) change(n int) *Job {
	j := f.jobs[n]
	if j.since < f.freezes {
		j.jobState = j.jobState.clone()
		j.since = f.freezes
	}
	return j
}

// clone copies everything that change in place. Causes are only appended to.
func (s *jobState) clone() *jobState {
	c := *s
	c.done, c.grants, c.skips = s.done.Clone(), maps.Clone(s.grants), maps.Clone(s.skips)
	c.givenUp = [2]taskset.Set{s.givenUp[0].Clone(), s.givenUp[1].Clone()}
	return &c
}

// changeSubmission returns a submission with a state that apply may change.
func (f *Facts) changeSubmission(key string) *Submission {
	s := f.submissions[key]
	if s.since < f.freezes {
		state := *s.submissionState
		state.since = f.freezes
		s.submissionState = &state
	}
	return s
}
