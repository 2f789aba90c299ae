package mapreduce

import (
	"cmp"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Job is a result with a name, and settings that need no types.
type Job struct {
	Name string

	// Reduces is the number of reduce tasks and so of main output files; 0 leaves
	// it to the property mapreduce.job.reduces, whose default is 1. A property
	// given with -D wins. See [MapOnly] for a job without reduces.
	Reduces int

	// FixedReduces, instead of Reduces, is for a job that is right with this number
	// alone, such as 1 for the ten largest of all: another given with -D is refused.
	FixedReduces int

	Properties map[string]string // by name, as with -D NAME=VALUE and -D JOB:NAME=VALUE, which win
	Files      map[string]string // side files for [Task.File]: name to path, as for [Lines]
	Outputs    []string          // outputs for [Write], letters and digits each
	Output     string            // the output directory; empty: see [Main]
	Format     Format            // of all outputs; nil: Text, or Binary for a later job alone

	stage stage
}

// Flow is several jobs run as one submission. A job that reads another's result
// by [From] starts when that has ended; the order of Jobs says nothing. A flow has
// one deadline, SLA, weight, priority, batch and pool. A job that fails or is killed
// takes the others with it; only those that have ended, or are moving their files
// into place, keep their outputs. Results that have no Output are kept in the
// cluster's staging directory, in the format that [From] reads, until the flow has
// ended; with the property quern.flow.keep, of one job or all, in a directory of the
// flow's output. They are not made anew: when files of theirs are lost, which only
// that file system can do, the job that reads them fails and names the first one.
type Flow struct {
	Name string
	Jobs []*Job
}

// Job makes a job that writes the result.
func (r *Result[K, V]) Job(name string) *Job {
	j := &Job{Name: name}
	if r != nil {
		j.stage = r.stage
	}
	return j
}

// jobSpec is what a job's code knows of its job.
type jobSpec struct {
	format    Format
	outputs   []string
	noCombine bool
	host      func(*mrruntime.Task) host
}

// Number is a type that can be added up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum adds; pass it to [Fold] or Combine by its name. Sums of floating-point
// numbers depend on the order of adding, which is not fixed.
func Sum[N Number](a, b N) N { return a + b }

// Min is the smaller one; pass it to [Fold] or Combine by its name.
func Min[T cmp.Ordered](a, b T) T { return min(a, b) }

// Max is the larger one; pass it to [Fold] or Combine by its name.
func Max[T cmp.Ordered](a, b T) T { return max(a, b) }
