package core

import (
	"iter"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Facts is what must survive, and nothing else. It changes only by applying
// committed entries, so it is equal on every job tracker that has applied the
// same ones; a snapshot is Facts encoded. Nothing here depends on Live.
type Facts struct {
	index        uint64     // of the last entry applied
	epoch        uint64     // term of the last leader that took office
	leader       tookOffice // that leader
	boot         bootstrapped
	incarnations uint64    // given out so far
	lastJob      int       // given out so far
	keepEnded    int       // keptJobs, except in tests
	scheduled    scheduled // the last one
	pooled       pooled    // likewise
	drains       int       // wishes about task trackers that are to leave, so far

	trackers    map[string]*trackerFacts
	draining    map[string]*drainFacts // by tracker, registered or not
	submissions map[string]*submissionFacts
	jobs        map[int]*jobFacts // by the id's N
	ended       []int             // job numbers in order of their end
}

// trackerFacts is a registered tracker. Losing it removes it.
type trackerFacts struct {
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

// submissionFacts is what a client handed in at once: one job or a flow's.
type submissionFacts struct {
	key     string
	first   int // number of its first job
	jobs    int
	at      int64 // Unix milliseconds
	staging string
	body    *wire.Submission // nil once all its jobs have ended
	swept   bool             // its staging directory is gone
	owner   string           // see who
	secret  []byte           // see Facts.token

	changes   int // made to what follows
	terms     wire.Terms
	suspended bool // no task of its jobs is launched
}

// jobFacts is what must survive of one job. Only one kind of its tasks commits
// output: reduces, or maps when it has no reduces.
type jobFacts struct {
	n       int
	sub     *submissionFacts
	index   int // in the submission's Plan
	name    string
	reduces int

	maps        int // -1 before the splits are written
	splitsHash  uint64
	digests     bool // the chosen map outputs' digests are known
	digestsHash uint64

	done       taskSet     // tasks whose output is committed
	grants     map[int]int // task to attempt number: may commit, not known to have
	stop       *stopped
	committing bool
	end        *ended
}

// keptJobs is how many ended jobs Facts keeps; older ones live in history. It is
// no setting, since it must be the same on every job tracker.
const keptJobs = 1000

func newFacts(keepEnded int) *Facts {
	return &Facts{
		keepEnded:   keepEnded,
		trackers:    make(map[string]*trackerFacts),
		draining:    make(map[string]*drainFacts),
		submissions: make(map[string]*submissionFacts),
		jobs:        make(map[int]*jobFacts),
	}
}

// id is the whole id of a job number.
func (f *Facts) id(n int) wire.JobID { return wire.JobID{Start: f.boot.Start, N: n} }

// Find finds a job that is kept by its id.
func (f *Facts) Find(id wire.JobID) *jobFacts {
	if id.Start != f.boot.Start {
		return nil
	}
	return f.jobs[id.N]
}

// ids lists the jobs of a submission in the order of its Plan.
func (f *Facts) ids(s *submissionFacts) []wire.JobID {
	ids := make([]wire.JobID, s.jobs)
	for i := range ids {
		ids[i] = f.id(s.first + i)
	}
	return ids
}

// flow is the jobs of a submission, in the order of its Plan.
func (f *Facts) flow(s *submissionFacts) iter.Seq[*jobFacts] {
	return func(yield func(*jobFacts) bool) {
		for i := range s.jobs {
			if !yield(f.jobs[s.first+i]) {
				return
			}
		}
	}
}

// mapsAtATime is how many maps the jobs of a submission have that have not ended.
func (f *Facts) mapsAtATime(s *submissionFacts) int {
	n := 0
	for j := range f.flow(s) {
		if j.end == nil {
			n += max(j.maps, 0)
		}
	}
	return n
}

// doneWith is the staging directory of a submission all of whose jobs have ended, else
// empty.
func (f *Facts) doneWith(s *submissionFacts) string {
	for j := range f.flow(s) {
		if j.end == nil {
			return ""
		}
	}
	return s.staging
}

// after lists the jobs whose output j reads.
func (f *Facts) after(j *jobFacts) []*jobFacts {
	if j.sub.body == nil {
		return nil
	}
	var after []*jobFacts
	for _, i := range j.sub.body.Plan.Jobs[j.index].After() {
		after = append(after, f.jobs[j.sub.first+i])
	}
	return after
}

// waiting says whether j needs the output of a job that has not succeeded.
func (f *Facts) waiting(j *jobFacts) bool {
	return slices.ContainsFunc(f.after(j), func(a *jobFacts) bool {
		return a.end == nil || a.end.Outcome != wire.Succeeded
	})
}

// state derives where a job is in its life.
func (f *Facts) state(j *jobFacts) wire.State {
	switch {
	case j.end != nil:
		return j.end.Outcome
	case j.stop != nil:
		return wire.Stopping
	case j.committing:
		return wire.Committing
	case j.maps >= 0:
		return wire.Running
	case f.waiting(j):
		return wire.Waiting
	}
	return wire.Preparing
}

// commits is how many tasks commit output, and kind which.
func (j *jobFacts) commits() int {
	if j.reduces == 0 {
		return j.maps
	}
	return j.reduces
}

func (j *jobFacts) kind() wire.Kind {
	if j.reduces == 0 {
		return wire.Map
	}
	return wire.Reduce
}

// running says whether tasks of j may still be granted and committed.
func (j *jobFacts) running() bool {
	return j != nil && j.maps >= 0 && j.end == nil && j.stop == nil && !j.committing
}

// apply takes the next committed entry in. It reports whether the fact fitted;
// one that did not leaves Facts as they were, on every job tracker alike.
func (f *Facts) apply(index, term uint64, x fact) bool {
	f.index = index
	if !x.fits(f) {
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
