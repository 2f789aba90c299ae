// Package facts is the replicated state of a cluster: what must survive, and nothing else.
//
// A [Fact] is a change of this state, and one entry of the log. [Facts] is the state after the
// entries applied so far. Only [Facts.Apply] changes it, and depends on nothing but the
// entry: Facts are equal on every job tracker that has applied the same entries, and
// [Facts.Snapshot] gives equal bytes for them. Methods that read Facts return copies.
//
// Facts is not safe for concurrent use, except that any goroutine may read what [Facts.Freeze]
// returns.
//
// # Formats
//
// A log entry:
//
//	+------------+-----------+------------------------------------+
//	| version u8 | number u8 | msgpack of the fact, short names   |
//	+------------+-----------+------------------------------------+
//
// Numbers and field names are append-only: testdata/golden/log.txt has the bytes. An unknown
// version or number is refused with [ErrUnknownFact]: other job trackers have applied it, so
// this one must stop.
//
// In a snapshot of version 1, unknown fields are ignored: they were dropped since. In version
// 2 they are refused:
//
//	+------------+----------------------------+
//	| version u8 | msgpack of factsSnapshot   |
//	+------------+----------------------------+
package facts

import (
	"iter"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// Facts is the replicated state; see the package comment.
type Facts struct {
	index        uint64        // number of the last entry applied
	epoch        uint64        // term of the last elected leader
	leader       LeaderElected // the leader of that term
	boot         Bootstrapped
	incarnations uint64            // number of the last incarnation
	lastJob      int               // number of the last job
	maxEndedJobs int               // MaxEndedJobs, except in tests
	scheduling   SchedulingChanged // the last applied
	pools        PoolsChanged      // the last applied
	drains       int               // Drains so far

	operatorChanges    int                           // see OperatorChanges
	operatorExclusions map[string]*OperatorExclusion // by tracker, registered or not

	trackers    map[string]*Tracker
	draining    map[string]*Draining // by tracker, registered or not
	submissions map[string]*Submission
	jobs        map[int]*Job // by the id's N
	numbers     []int        // of the kept jobs, ascending
	ended       []int        // job numbers in order of their end
	freezes     uint64       // Views made so far, see Facts.Freeze
}

// Tracker is a registered tracker. Losing it removes it.
type Tracker struct {
	Name        string `msgpack:"t"`
	Process     uint64 `msgpack:"p"`
	Incarnation uint64 `msgpack:"i"`
	Host        string `msgpack:"h"`
	Addr        string `msgpack:"a"`
	MapSlots    int    `msgpack:"m"`
	ReduceSlots int    `msgpack:"r"`
	Excluded    string `msgpack:"x"`           // reason of its exclusion; empty: it is not excluded
	Until       int64  `msgpack:"u"`           // Unix milliseconds when the exclusion ends
	Rack        string `msgpack:"k,omitempty"` // as the tracker reports it; empty: unknown
}

// Submission is a job, or the jobs of a flow, that a client submitted. Only its state changes.
type Submission struct {
	key     string
	first   int // number of its first job
	jobs    int
	at      int64 // Unix milliseconds
	staging string
	owner   string // see Owner
	view    string // ACL of those who may see its jobs
	modify  string // ACL of those who may change its jobs
	secret  []byte // see Facts.Token
	*submissionState
}

// submissionState is the part of a Submission that changes.
type submissionState struct {
	since uint64           // value of Facts.freezes when this state was made
	body  *wire.Submission // nil once all its jobs have ended
	swept bool             // its staging directory is gone

	changes   int // number of changes of the fields below
	settings  wire.Settings
	suspended bool // no task of its jobs is launched
}

// Job is the replicated state of a job. Only one kind of its tasks commits output: reduces, or
// maps if it has no reduces. Only its state changes.
type Job struct {
	n       int
	sub     *Submission
	index   int // in the submission's Plan
	name    string
	reduces int
	*jobState
}

// jobState is the part of a Job that changes.
type jobState struct {
	since       uint64 // value of Facts.freezes when this state was made
	maps        int    // -1 before the splits are written
	splitsHash  uint64
	digests     bool // the chosen map outputs' digests are known
	digestsHash uint64

	done       taskset.Set    // tasks with committed output
	grants     map[int]int    // attempt that may commit each task; none once it has committed
	givenUp    [2]taskset.Set // maps and reduces, see GivenUp
	causes     []GivenUpCause
	skips      map[taskKey]*skips // see Skipped; none once it has ended
	stop       *Stopped
	committing bool
	end        *Ended
}

// MaxEndedJobs is how many ended jobs Facts keeps; older ones are in the history. It is not
// configurable, since it must be the same on every job tracker.
const MaxEndedJobs = 1000

// New makes Facts to which no entry was applied.
func New() *Facts {
	return &Facts{
		maxEndedJobs: MaxEndedJobs,
		trackers:     make(map[string]*Tracker),
		draining:     make(map[string]*Draining),
		submissions:  make(map[string]*Submission),
		jobs:         make(map[int]*Job),

		operatorExclusions: make(map[string]*OperatorExclusion),
	}
}

// ID returns the id of the job with a number.
func (f *Facts) ID(n int) wire.JobID { return wire.JobID{Start: f.boot.Start, N: n} }

// Find returns the job with an id, or nil if it is not kept.
func (f *Facts) Find(id wire.JobID) *Job {
	if id.Start != f.boot.Start {
		return nil
	}
	return f.jobs[id.N]
}

// IDs lists the jobs of a submission in the order of its Plan.
func (f *Facts) IDs(s *Submission) []wire.JobID {
	ids := make([]wire.JobID, s.jobs)
	for i := range ids {
		ids[i] = f.ID(s.first + i)
	}
	return ids
}

// Flow yields the jobs of a submission, in the order of its Plan.
func (f *Facts) Flow(s *Submission) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range s.jobs {
			if !yield(f.jobs[s.first+i]) {
				return
			}
		}
	}
}

// MapsOfOpenJobs counts the maps of a submission's jobs that have not ended.
func (f *Facts) MapsOfOpenJobs(s *Submission) int {
	n := 0
	for j := range f.Flow(s) {
		if j.end == nil {
			n += max(j.maps, 0)
		}
	}
	return n
}

// StagingIfEnded returns the staging directory of a submission if all its jobs have ended, else
// the empty string.
func (f *Facts) StagingIfEnded(s *Submission) string {
	for j := range f.Flow(s) {
		if j.end == nil {
			return ""
		}
	}
	return s.staging
}

// After lists the jobs from which j reads output.
func (f *Facts) After(j *Job) []*Job {
	if j.sub.body == nil {
		return nil
	}
	var after []*Job
	for _, i := range j.sub.body.Plan.Jobs[j.index].InputJobs() {
		after = append(after, f.jobs[j.sub.first+i])
	}
	return after
}

// Waiting reports whether j needs the output of a job that has not succeeded.
func (f *Facts) Waiting(j *Job) bool {
	return slices.ContainsFunc(f.After(j), func(a *Job) bool {
		return a.end == nil || a.end.Outcome != wire.Succeeded
	})
}

// State returns the state of a job.
func (f *Facts) State(j *Job) wire.State {
	switch {
	case j.end != nil:
		return j.end.Outcome
	case j.stop != nil:
		return wire.Stopping
	case j.committing:
		return wire.Committing
	case j.maps >= 0:
		return wire.Running
	case f.Waiting(j):
		return wire.Waiting
	}
	return wire.Preparing
}

// Commits counts the tasks that commit output.
func (j *Job) Commits() int {
	if j.reduces == 0 {
		return j.maps
	}
	return j.reduces
}

// Kind is the kind of the tasks that commit output.
func (j *Job) Kind() wire.Kind {
	if j.reduces == 0 {
		return wire.Map
	}
	return wire.Reduce
}

// Running reports whether tasks of j may still be granted and committed.
func (j *Job) Running() bool {
	return j != nil && j.maps >= 0 && j.end == nil && j.stop == nil && !j.committing
}

// Apply applies the next committed entry, and reports whether the fact fitted. If not, only
// the index changes, on every job tracker alike. Apply copies all of x that it keeps, except
// the body of a submission and a pool table.
func (f *Facts) Apply(index, term uint64, x Fact) bool {
	f.index = index
	if !x.Fits(f) {
		return false
	}
	x.apply(f, term)
	return true
}

// dropEndedJobs drops the oldest ended submissions when more than maxEndedJobs have ended.
func (f *Facts) dropEndedJobs() {
	for i := 0; len(f.ended) > f.maxEndedJobs && i < len(f.ended); {
		j := f.jobs[f.ended[i]]
		if j.sub.body != nil || !j.sub.swept {
			i++
			continue
		}
		for n := range j.sub.jobs {
			delete(f.jobs, j.sub.first+n)
		}
		at, _ := slices.BinarySearch(f.numbers, j.sub.first)
		f.numbers = slices.Delete(f.numbers, at, at+j.sub.jobs)
		delete(f.submissions, j.sub.key)
		f.ended = slices.DeleteFunc(f.ended, func(n int) bool { return f.jobs[n] == nil })
	}
}
