package core

import (
	"iter"
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// What the core reads of Facts. Nothing here gives away what could be changed, but for
// the bodies of submissions, which are too large to copy and never change.

// Index is that of the last entry applied.
func (f *Facts) Index() uint64 { return f.index }

// Epoch is the term of the last leader that took office.
func (f *Facts) Epoch() uint64 { return f.epoch }

// Leader is that leader.
func (f *Facts) Leader() tookOffice { return f.leader }

// Boot is how the cluster began; Start is 0 when it has not.
func (f *Facts) Boot() bootstrapped { return f.boot }

// Scheduled is how slots are shared since the last change.
func (f *Facts) Scheduled() scheduled { return f.scheduled }

// Pools is the pool table in force, and its number. The table must not be changed.
func (f *Facts) Pools() (n int, table *pool.Table) { return f.pooled.N, &f.pooled.Table }

// Drains is how many wishes about draining there were.
func (f *Facts) Drains() int { return f.drains }

// Tracker finds a registered tracker.
func (f *Facts) Tracker(name string) (trackerFacts, bool) {
	t := f.trackers[name]
	if t == nil {
		return trackerFacts{}, false
	}
	return *t, true
}

// Trackers are all that are registered, by name.
func (f *Facts) Trackers() iter.Seq[trackerFacts] {
	return func(yield func(trackerFacts) bool) {
		for _, name := range slices.Sorted(maps.Keys(f.trackers)) {
			if !yield(*f.trackers[name]) {
				return
			}
		}
	}
}

// Draining finds what is wished of a tracker that is to leave.
func (f *Facts) Draining(name string) (drainFacts, bool) {
	d := f.draining[name]
	if d == nil {
		return drainFacts{}, false
	}
	return *d, true
}

// AllDraining are the names of trackers that are to leave, registered or not, sorted.
func (f *Facts) AllDraining() []string { return slices.Sorted(maps.Keys(f.draining)) }

// Submission finds a submission by its key.
func (f *Facts) Submission(key string) *submissionFacts { return f.submissions[key] }

// Submissions are all that are kept, by key.
func (f *Facts) Submissions() iter.Seq[*submissionFacts] { return sorted(f.submissions) }

// Job finds a job by its number.
func (f *Facts) Job(n int) *jobFacts { return f.jobs[n] }

// Jobs are all that are kept, by number.
func (f *Facts) Jobs() iter.Seq[*jobFacts] { return sorted(f.jobs) }

// Kept is how many jobs are kept, and how many of them have ended.
func (f *Facts) Kept() (jobs, ended int) { return len(f.jobs), len(f.ended) }

// Latest are the jobs that have ended, the last one first.
func (f *Facts) Latest() iter.Seq[*jobFacts] {
	return func(yield func(*jobFacts) bool) {
		for _, n := range slices.Backward(f.ended) {
			if j := f.jobs[n]; j != nil && !yield(j) {
				return
			}
		}
	}
}

func sorted[K int | string, V any](all map[K]V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[k]) {
				return
			}
		}
	}
}

// Open says whether some of the submission's jobs have not ended.
func (s *submissionFacts) Open() bool { return s.body != nil }

// Program is the hash of the executable of a submission that is open.
func (s *submissionFacts) Program() string {
	if s.body == nil {
		return ""
	}
	return s.body.Program.Hash
}

// Plan is that of the job, which has not ended. It must not be changed.
func (j *jobFacts) Plan() *wire.JobPlan { return &j.sub.body.Plan.Jobs[j.index] }

// Committed says whether a task's output is committed.
func (j *jobFacts) Committed(task int) bool { return j.done.Has(task) }

// CommittedTasks is how many they are.
func (j *jobFacts) CommittedTasks() int { return j.done.Len() }

// Grant is the attempt that may commit a task's output, and is not known to have.
func (j *jobFacts) Grant(task int) (attempt int, ok bool) {
	attempt, ok = j.grants[task]
	return attempt, ok
}

// Grants are the tasks that such an attempt has, ascending.
func (j *jobFacts) Grants() []int { return slices.Sorted(maps.Keys(j.grants)) }

// Stopping says whether the job will fail or be killed, and has not ended yet.
func (j *jobFacts) Stopping() bool { return j.stop != nil }

// Stop is why; the zero stopped for a job that does not.
func (j *jobFacts) Stop() stopped {
	if j.stop == nil {
		return stopped{}
	}
	return *j.stop
}

// Ended says whether the job's life is over.
func (j *jobFacts) Ended() bool { return j.end != nil }

// End is how it was; the zero ended for a job that lives.
func (j *jobFacts) End() ended {
	if j.end == nil {
		return ended{}
	}
	return *j.end
}
