package runtime

import (
	"fmt"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// Program is a job program's code as functions on bytes, one Job for each of Plan.Jobs.
// Package mapreduce makes it; the worker loop runs it.
type Program struct {
	Plan wire.Plan
	Jobs []Job
}

// WorkerEnvironment describes a worker's environment, for errors that occur in a worker
// but did not occur in the client.
func WorkerEnvironment(sub *wire.Submission, dir string) string {
	return fmt.Sprintf("a worker runs in %s, not in %s, and with variables from the environment of its task tracker: hand files over by Job.Files, values by flags",
		dir, sub.Program.Dir)
}

// Job is one job's code.
type Job struct {
	Maps    []MapFunc      // one for each input of the JobPlan
	Formats map[int]Format // of inputs with the author's own format
	Combine CombineFunc    // nil: none
	Reduce  ReduceFunc     // nil: map-only
	Ranges  *Ranges        // nil: cuts come only from samples

	// DividesKeys says that records with equal keys may be in several partitions of a total order: the maps obey
	// [Task.Division], and the reduce treats each record by itself.
	DividesKeys bool

	// SpreadsKeys says that it is a join without a total order: keys end with the byte of their side, and the maps
	// obey [Task.Division]. So the values of a key on one side may be in any partition.
	SpreadsKeys bool

	// CopiesDirectories says that the job's code may write into local directories among the side files, as commands of
	// Streaming do: attempts share a copy, as of directories elsewhere.
	CopiesDirectories bool

	Texts []func(key, value []byte) string // for each map: prints a record that it emits; none if the job is map-only
}

// Load makes the Program of a submission: it sets the client's flag values and builds the
// job. The worker loop calls it for every attempt, so that each attempt has its own
// captured variables.
type Load func(sub *wire.Submission) (*Program, error)

// MapFunc maps one split. It emits to out. In a map-only job out is nil, and it writes to
// [Task.Output]. It returns its own first error, or the first error of in.Err or out.
type MapFunc func(t *Task, in *Split, out Collector) error

// CombineFunc shrinks sorted records: it reads them all and emits fewer, in order, without
// changing keys.
type CombineFunc func(t *Task, in Records, emit func(key, value []byte) error) error

// ReduceFunc reduces one partition and writes to [Task.Output]. It returns its own first
// error, or the error of in.Err.
type ReduceFunc func(t *Task, in Records) error

// Collector takes map output and copies key and value. The first error is final: every
// later call returns it too.
type Collector interface {
	Collect(partition int, key, value []byte) error
}

// Records is a cursor over records sorted by key.
type Records = shuffle.Records
