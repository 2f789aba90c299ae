package facts

import (
	"iter"
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// These methods read Facts. They return copies, except of submissions' bodies and the pool
// table, which are too large to copy and never change.

// Index is the index of the last entry applied.
func (f *Facts) Index() uint64 { return f.index }

// Epoch is the term of the last LeaderElected.
func (f *Facts) Epoch() uint64 { return f.epoch }

// Leader is the leader of that term.
func (f *Facts) Leader() LeaderElected { return f.leader }

// Boot is the cluster's first fact; Start is 0 before it.
func (f *Facts) Boot() Bootstrapped { return f.boot }

// Scheduled is the last change of the scheduling.
func (f *Facts) Scheduled() SchedulingChanged { return f.scheduling }

// Pools is the pool table in force, and its number. The table must not be changed.
func (f *Facts) Pools() (n int, table *pool.Table) { return f.pools.N, &f.pools.Table }

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

// Trackers yields all registered trackers, by name.
func (f *Facts) Trackers() iter.Seq[Tracker] {
	return func(yield func(Tracker) bool) {
		for _, name := range slices.Sorted(maps.Keys(f.trackers)) {
			if !yield(*f.trackers[name]) {
				return
			}
		}
	}
}

// Draining finds the progress of a tracker's drain.
func (f *Facts) Draining(name string) (Draining, bool) {
	d := f.draining[name]
	if d == nil {
		return Draining{}, false
	}
	return *d, true
}

// AllDraining lists the names of draining trackers, registered or not, sorted.
func (f *Facts) AllDraining() []string { return slices.Sorted(maps.Keys(f.draining)) }

// OperatorChanges is how many exclusions by operators began and ended.
func (f *Facts) OperatorChanges() int { return f.operatorChanges }

// OperatorExclusion finds an operator's exclusion of a tracker.
func (f *Facts) OperatorExclusion(tracker string) (OperatorExclusion, bool) {
	x := f.operatorExclusions[tracker]
	if x == nil {
		return OperatorExclusion{}, false
	}
	return *x, true
}

// OperatorExclusions lists the exclusions by operators, by tracker.
func (f *Facts) OperatorExclusions() []OperatorExclusion {
	var all []OperatorExclusion
	for x := range sorted(f.operatorExclusions) {
		all = append(all, *x)
	}
	return all
}

// Submission finds a submission by its key.
func (f *Facts) Submission(key string) *Submission { return f.submissions[key] }

// Job finds a job by its number.
func (f *Facts) Job(n int) *Job { return f.jobs[n] }

// Jobs yields all kept jobs, by number.
func (f *Facts) Jobs() iter.Seq[*Job] { return f.JobsAfter(0) }

// JobsAfter yields the kept jobs with a higher number than n, by number. Facts must not change
// meanwhile.
func (f *Facts) JobsAfter(n int) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		at, _ := slices.BinarySearch(f.numbers, n+1)
		for _, n := range f.numbers[at:] {
			if !yield(f.jobs[n]) {
				return
			}
		}
	}
}

// JobsBefore yields the kept jobs with a lower number than n, the highest one first; 0: all jobs. Facts
// must not change meanwhile.
func (f *Facts) JobsBefore(n int) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		to := len(f.numbers)
		if n > 0 {
			to, _ = slices.BinarySearch(f.numbers, n)
		}
		for _, n := range slices.Backward(f.numbers[:to]) {
			if !yield(f.jobs[n]) {
				return
			}
		}
	}
}

// LastJob is the id of the last job submitted; its N is 0 before the first.
func (f *Facts) LastJob() wire.JobID { return f.ID(f.lastJob) }

// CountJobs counts the kept jobs, and the ended ones among them.
func (f *Facts) CountJobs() (jobs, ended int) { return len(f.jobs), len(f.ended) }

// Latest yields the ended jobs, the last one first.
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

// Key is the client's name for the submission.
func (s *Submission) Key() string { return s.key }

// First is the number of its first job.
func (s *Submission) First() int { return s.first }

// Jobs is how many jobs it has.
func (s *Submission) Jobs() int { return s.jobs }

// View is the ACL of those who may see its jobs; empty: it has none.
func (s *Submission) View() string { return s.view }

// Modify is the ACL of those who may change and kill its jobs; empty: it has none.
func (s *Submission) Modify() string { return s.modify }

// At is when it was submitted, in Unix milliseconds.
func (s *Submission) At() int64 { return s.at }

// Staging is the URL of its directory below the staging directory.
func (s *Submission) Staging() string { return s.staging }

// Swept reports whether that directory is gone.
func (s *Submission) Swept() bool { return s.swept }

// Changes is how often its settings were changed.
func (s *Submission) Changes() int { return s.changes }

// Settings returns its job settings.
func (s *Submission) Settings() wire.Settings { return copied(s.settings) }

// Pool is its pool, without a copy of all settings: package assign reads it often.
func (s *Submission) Pool() string { return s.settings.Pool }

// Priority is its priority, without a copy of all settings.
func (s *Submission) Priority() wire.Priority { return s.settings.Priority }

// Suspended reports whether no task of its jobs is launched.
func (s *Submission) Suspended() bool { return s.suspended }

// Open reports whether some of its jobs have not ended.
func (s *Submission) Open() bool { return s.body != nil }

// Program is the hash of the executable of a submission that is open.
func (s *Submission) Program() string {
	if s.body == nil {
		return ""
	}
	return s.body.Program.Hash
}

// Body is what the client submitted, if the submission is open; else nil. It must not be changed.
func (s *Submission) Body() *wire.Submission { return s.body }

// Digest is the digest of the staged file of a submission that is open; nil: not known.
func (s *Submission) Digest() []byte {
	if s.body == nil {
		return nil
	}
	return s.body.Digest
}

// N is the number of its id.
func (j *Job) N() int { return j.n }

// Submission is the job's submission.
func (j *Job) Submission() *Submission { return j.sub }

// Index is its place in the submission's Plan.
func (j *Job) Index() int { return j.index }

// Name is the job's name.
func (j *Job) Name() string { return j.name }

// Plan is the plan of a job of an open submission. It must not be changed.
func (j *Job) Plan() *wire.JobPlan { return &j.sub.body.Plan.Jobs[j.index] }

// Reduces is its number of reduces.
func (j *Job) Reduces() int { return j.reduces }

// Maps is its number of maps, -1 before the splits are written.
func (j *Job) Maps() int { return j.maps }

// SplitsHash is the hash of the splits file.
func (j *Job) SplitsHash() uint64 { return j.splitsHash }

// Digests is the hash of the digests of the map outputs that reduces read; ok is false
// before it is known.
func (j *Job) Digests() (hash uint64, ok bool) { return j.digestsHash, j.digests }

// Committing reports whether its outputs move into place.
func (j *Job) Committing() bool { return j.committing }

// Committed reports whether a task's output is committed.
func (j *Job) Committed(task int) bool { return j.done.Has(task) }

// CommittedTasks counts the tasks with committed output.
func (j *Job) CommittedTasks() int { return j.done.Len() }

// Grant is the attempt that may commit a task's output; ok is false once it has committed.
func (j *Job) Grant(task int) (attempt int, ok bool) {
	attempt, ok = j.grants[task]
	return attempt, ok
}

// Grants lists the tasks with a grant, ascending.
func (j *Job) Grants() []int { return slices.Sorted(maps.Keys(j.grants)) }

// Stopping reports whether the job will fail or be killed, and has not ended yet.
func (j *Job) Stopping() bool { return j.stop != nil }

// Stop is the fact that stops the job; the zero Stopped if none does.
func (j *Job) Stop() Stopped {
	if j.stop == nil {
		return Stopped{}
	}
	return *j.stop
}

// Ended reports whether the job has ended.
func (j *Job) Ended() bool { return j.end != nil }

// End is the fact that ended the job; the zero Ended before that.
func (j *Job) End() Ended {
	if j.end == nil {
		return Ended{}
	}
	return *j.end.copied()
}
