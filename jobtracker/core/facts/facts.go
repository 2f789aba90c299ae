// Package facts is the replicated state of a cluster: what must survive, and nothing else.
//
// A [Fact] is one thing that has happened, and one entry of the log. [Facts] is the state
// after the entries applied so far. It changes by [Facts.Apply] alone, which depends on
// nothing but the entry: Facts are equal on every job tracker that has applied the same
// entries, and [Facts.Snapshot] gives equal bytes for them. What others read, they read
// through methods that give nothing away that could be changed.
//
// Facts is not safe for concurrent use.
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
// that this one must not go on.
//
// A snapshot, where version 1 may have fields that are not known any more, and those of
// version 2 which are not known are refused:
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

// Facts is what must survive, and nothing else. It changes only by applying
// committed entries, so it is equal on every job tracker that has applied the
// same ones; a snapshot is Facts encoded. Nothing here depends on Live.
type Facts struct {
	index        uint64     // of the last entry applied
	epoch        uint64     // term of the last leader that took office
	leader       TookOffice // that leader
	boot         Bootstrapped
	incarnations uint64    // given out so far
	lastJob      int       // given out so far
	keepEnded    int       // KeptJobs, except in tests
	scheduled    Scheduled // the last one
	pooled       Pooled    // likewise
	drains       int       // Drains so far

	trackers    map[string]*Tracker
	draining    map[string]*Draining // by tracker, registered or not
	submissions map[string]*Submission
	jobs        map[int]*Job // by the id's N
	ended       []int        // job numbers in order of their end
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
	Excluded    string `msgpack:"x"`           // why it is given no work, empty: it is
	Until       int64  `msgpack:"u"`           // Unix milliseconds at which that ends
	Rack        string `msgpack:"k,omitempty"` // as it was told; empty: not at all
}

// Submission is what a client handed in at once: one job or a flow's.
type Submission struct {
	key     string
	first   int // number of its first job
	jobs    int
	at      int64 // Unix milliseconds
	staging string
	body    *wire.Submission // nil once all its jobs have ended
	swept   bool             // its staging directory is gone
	owner   string           // see Who
	secret  []byte           // see Facts.Token

	changes   int // made to what follows
	terms     wire.Terms
	suspended bool // no task of its jobs is launched
}

// Job is what must survive of one job. Only one kind of its tasks commits
// output: reduces, or maps when it has no reduces.
type Job struct {
	n       int
	sub     *Submission
	index   int // in the submission's Plan
	name    string
	reduces int

	maps        int // -1 before the splits are written
	splitsHash  uint64
	digests     bool // the chosen map outputs' digests are known
	digestsHash uint64

	done       taskset.Set // tasks whose output is committed
	grants     map[int]int // task to attempt number: may commit, not known to have
	stop       *Stopped
	committing bool
	end        *Ended
}

// KeptJobs is how many ended jobs Facts keeps; older ones live in history. It is
// no setting, since it must be the same on every job tracker.
const KeptJobs = 1000

// New makes Facts of which nothing has been applied.
func New() *Facts {
	return &Facts{
		keepEnded:   KeptJobs,
		trackers:    make(map[string]*Tracker),
		draining:    make(map[string]*Draining),
		submissions: make(map[string]*Submission),
		jobs:        make(map[int]*Job),
	}
}

// ID is the whole id of a job number.
func (f *Facts) ID(n int) wire.JobID { return wire.JobID{Start: f.boot.Start, N: n} }

// Find finds a job that is kept by its id.
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

// Flow is the jobs of a submission, in the order of its Plan.
func (f *Facts) Flow(s *Submission) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range s.jobs {
			if !yield(f.jobs[s.first+i]) {
				return
			}
		}
	}
}

// MapsAtATime is how many maps the jobs of a submission have that have not ended.
func (f *Facts) MapsAtATime(s *Submission) int {
	n := 0
	for j := range f.Flow(s) {
		if j.end == nil {
			n += max(j.maps, 0)
		}
	}
	return n
}

// DoneWith is the staging directory of a submission all of whose jobs have ended, else
// empty.
func (f *Facts) DoneWith(s *Submission) string {
	for j := range f.Flow(s) {
		if j.end == nil {
			return ""
		}
	}
	return s.staging
}

// After lists the jobs whose output j reads.
func (f *Facts) After(j *Job) []*Job {
	if j.sub.body == nil {
		return nil
	}
	var after []*Job
	for _, i := range j.sub.body.Plan.Jobs[j.index].After() {
		after = append(after, f.jobs[j.sub.first+i])
	}
	return after
}

// Waiting says whether j needs the output of a job that has not succeeded.
func (f *Facts) Waiting(j *Job) bool {
	return slices.ContainsFunc(f.After(j), func(a *Job) bool {
		return a.end == nil || a.end.Outcome != wire.Succeeded
	})
}

// State derives where a job is in its life.
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

// Commits is how many tasks commit output, and kind which.
func (j *Job) Commits() int {
	if j.reduces == 0 {
		return j.maps
	}
	return j.reduces
}

func (j *Job) Kind() wire.Kind {
	if j.reduces == 0 {
		return wire.Map
	}
	return wire.Reduce
}

// Running says whether tasks of j may still be granted and committed.
func (j *Job) Running() bool {
	return j != nil && j.maps >= 0 && j.end == nil && j.stop == nil && !j.committing
}

// Apply takes the next committed entry in. It reports whether the fact fitted;
// one that did not leaves Facts as they were, on every job tracker alike. Of x it keeps
// copies, but for the body of a submission and a pool table.
func (f *Facts) Apply(index, term uint64, x Fact) bool {
	f.index = index
	if !x.Fits(f) {
		return false
	}
	x.apply(f, term)
	return true
}

// forget drops the oldest submissions of which all jobs have ended, when there
// are more ended jobs than are kept.
func (f *Facts) forget() {
	for i := 0; len(f.ended) > f.keepEnded && i < len(f.ended); {
		j := f.jobs[f.ended[i]]
		if j.sub.body != nil || !j.sub.swept {
			i++
			continue
		}
		for n := range j.sub.jobs {
			delete(f.jobs, j.sub.first+n)
		}
		delete(f.submissions, j.sub.key)
		f.ended = slices.DeleteFunc(f.ended, func(n int) bool { return f.jobs[n] == nil })
	}
}
