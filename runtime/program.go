package runtime

import (
	"fmt"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// Program is a job program's code as functions on bytes, one Job for each of
// Plan.Jobs. The typed layer above makes it; the worker loop runs it.
type Program struct {
	Plan wire.Plan
	Jobs []Job
}

// Elsewhere says, for an error of the job's own code that its client did not meet,
// what is different where a worker runs.
func Elsewhere(sub *wire.Submission, dir string) string {
	return fmt.Sprintf("a worker runs in %s, not in %s, and with the environment of its task tracker: hand files over by Job.Files, values by flags",
		dir, sub.Program.Dir)
}

// Job is one job's code.
type Job struct {
	Maps    []MapFunc      // one for each input of the JobPlan
	Formats map[int]Format // of those inputs whose format is not known by its name
	Combine CombineFunc    // nil: none
	Reduce  ReduceFunc     // nil: map-only
}

// Load makes the Program of a submission: it sets the flags as the client saw
// them and builds. The worker loop calls it for every attempt, so that what the
// author's functions capture is per attempt.
type Load func(sub *wire.Submission) (*Program, error)

// MapFunc maps one split. It emits to out; in a map-only job out is nil and it
// writes to [Task.Output] instead. It returns the first error of its own, of
// in.Err or of out.
type MapFunc func(t *Task, in *Split, out Collector) error

// CombineFunc shrinks sorted records: it reads them all and emits fewer, in
// order, without changing a key.
type CombineFunc func(t *Task, in Records, emit func(key, value []byte) error) error

// ReduceFunc reduces one partition and writes to [Task.Output]. It returns the
// first error of its own or of in.Err.
type ReduceFunc func(t *Task, in Records) error

// Collector takes map output. Key and value are copied before Collect returns.
// The first error is final: every later call returns it too.
type Collector interface {
	Collect(partition int, key, value []byte) error
}

// Records is a cursor over records sorted by key.
type Records = shuffle.Records
