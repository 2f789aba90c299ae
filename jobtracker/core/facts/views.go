package facts

import (
	"iter"
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// What the core reads of Facts. Nothing here gives away what could be changed, but for the
// bodies of submissions and the pool table, which are too large to copy and never change.

// Index is that of the last entry applied.
func (f *Facts) Index() uint64 { return f.index }

// Epoch is the term of the last leader that took office.
func (f *Facts) Epoch() uint64 { return f.epoch }

// Leader is that leader.
func (f *Facts) Leader() TookOffice { return f.leader }

// Boot is how the cluster began; Start is 0 when it has not.
func (f *Facts) Boot() Bootstrapped { return f.boot }

// Scheduled is how slots are shared since the last change.
func (f *Facts) Scheduled() Scheduled { return f.scheduled }

// Pools is the pool table in force, and its number. The table must not be changed.
func (f *Facts) Pools() (n int, table *pool.Table) { return f.pooled.N, &f.pooled.Table }

// Drains is how many Drain facts there were.
func (f *Facts) Drains() int { return f.drains }

// Tracker finds a registered tracker.
func (f *Facts) Tracker(name string) (Tracker, bool) {
	t := f.trackers[name]
	if t == nil {
		return Tracker{}, false
	}
	return *t, true
}

// Trackers are all that are registered, by name.
func (f *Facts) Trackers() iter.Seq[Tracker] {
	return func(yield func(Tracker) bool) {
		for _, name := range slices.Sorted(maps.Keys(f.trackers)) {
			if !yield(*f.trackers[name]) {
				return
			}
		}
	}
}

// Draining finds what is wished of a tracker that is to leave.
func (f *Facts) Draining(name string) (Draining, bool) {
	d := f.draining[name]
	if d == nil {
		return Draining{}, false
	}
	return *d, true
}

// AllDraining are the names of trackers that are to leave, registered or not, sorted.
func (f *Facts) AllDraining() []string { return slices.Sorted(maps.Keys(f.draining)) }

// Submission finds a submission by its key.
func (f *Facts) Submission(key string) *Submission { return f.submissions[key] }

// Submissions are all that are kept, by key.
func (f *Facts) Submissions() iter.Seq[*Submission] { return sorted(f.submissions) }

// Job finds a job by its number.
func (f *Facts) Job(n int) *Job { return f.jobs[n] }

// Jobs are all that are kept, by number.
func (f *Facts) Jobs() iter.Seq[*Job] { return sorted(f.jobs) }

// Kept is how many jobs are kept, and how many of them have ended.
func (f *Facts) Kept() (jobs, ended int) { return len(f.jobs), len(f.ended) }

// Latest are the jobs that have ended, the last one first.
func (f *Facts) Latest() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
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

// Key is what its client named the submission.
func (s *Submission) Key() string { return s.key }

// First is the number of its first job.
func (s *Submission) First() int { return s.first }

// Jobs is how many jobs it has.
func (s *Submission) Jobs() int { return s.jobs }

// At is when it was submitted, in Unix milliseconds.
func (s *Submission) At() int64 { return s.at }

// Staging is the URL of its directory below the staging directory.
func (s *Submission) Staging() string { return s.staging }

// Swept says whether that directory is gone.
func (s *Submission) Swept() bool { return s.swept }

// Changes is how often its settings were changed.
func (s *Submission) Changes() int { return s.changes }

// Terms are its settings.
func (s *Submission) Terms() wire.Terms { return copied(s.terms) }

// Pool is the pool of its settings, without a copy of the others: package assign asks for it
// whenever a job moves in a line.
func (s *Submission) Pool() string { return s.terms.Pool }

// Priority is the priority of its settings, likewise.
func (s *Submission) Priority() wire.Priority { return s.terms.Priority }

// Suspended says whether no task of its jobs is launched.
func (s *Submission) Suspended() bool { return s.suspended }

// Open says whether some of its jobs have not ended.
func (s *Submission) Open() bool { return s.body != nil }

// Program is the hash of the executable of a submission that is open.
func (s *Submission) Program() string {
	if s.body == nil {
		return ""
	}
	return s.body.Program.Hash
}

// N is the number of its id.
func (j *Job) N() int { return j.n }

// Submission is the one that it came with.
func (j *Job) Submission() *Submission { return j.sub }

// Index is its place in the submission's Plan.
func (j *Job) Index() int { return j.index }

// Name is the job's name.
func (j *Job) Name() string { return j.name }

// Plan is that of a job that has not ended. It must not be changed.
func (j *Job) Plan() *wire.JobPlan { return &j.sub.body.Plan.Jobs[j.index] }

// Reduces is how many it has.
func (j *Job) Reduces() int { return j.reduces }

// Maps is how many it has, -1 before the splits are written.
func (j *Job) Maps() int { return j.maps }

// SplitsHash is the hash of the splits file.
func (j *Job) SplitsHash() uint64 { return j.splitsHash }

// Digests is the hash of the digests of the map outputs that reduces read; ok is false
// before it is known.
func (j *Job) Digests() (hash uint64, ok bool) { return j.digestsHash, j.digests }

// Committing says whether its outputs move into place.
func (j *Job) Committing() bool { return j.committing }

// Committed says whether a task's output is committed.
func (j *Job) Committed(task int) bool { return j.done.Has(task) }

// CommittedTasks is how many they are.
func (j *Job) CommittedTasks() int { return j.done.Len() }

// Grant is the attempt that may commit a task's output, and is not known to have.
func (j *Job) Grant(task int) (attempt int, ok bool) {
	attempt, ok = j.grants[task]
	return attempt, ok
}

// Grants are the tasks that such an attempt has, ascending.
func (j *Job) Grants() []int { return slices.Sorted(maps.Keys(j.grants)) }

// Stopping says whether the job will fail or be killed, and has not ended yet.
func (j *Job) Stopping() bool { return j.stop != nil }

// Stop is why; the zero Stopped for a job that does not.
func (j *Job) Stop() Stopped {
	if j.stop == nil {
		return Stopped{}
	}
	return *j.stop
}

// Ended says whether the job's life is over.
func (j *Job) Ended() bool { return j.end != nil }

// End is how it was; the zero Ended for a job that lives.
func (j *Job) End() Ended {
	if j.end == nil {
		return Ended{}
	}
	return *j.end.copied()
}
