package mapreduce

import (
	"cmp"
	"sync/atomic"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Job is a result with a name and settings.
type Job struct {
	Name string

	// Reduces is the number of reduce tasks; each writes one main output file. If it is
	// 0, the property mapreduce.job.reduces decides; its default is 1. A property given
	// with -D wins. See [MapOnly] for a job without reduces.
	Reduces int

	// FixedReduces, instead of Reduces, is for a job that is correct only with this
	// number, such as 1 for a global top ten. Another number given with -D is refused.
	FixedReduces int

	Properties map[string]string // value by name; -D NAME=VALUE and -D JOB:NAME=VALUE win
	Files      map[string]string // side files for [Task.File]: path by name; paths are as for [Lines]
	Archives   map[string]string // for [Task.Directory]: path of an archive or directory by name
	Outputs    []string          // names of outputs for [Write], of letters and digits
	Output     string            // the output directory; empty: see [Main]
	Format     Format            // of all outputs; nil: Text, or Binary if a later job reads the result

	stage stage
}

// Flow is several jobs that run as one submission, with one deadline, SLA, weight,
// priority, batch and pool. A job that reads another's result with [From] starts when
// that job has ended; the order of Jobs does not matter.
//
// If one job fails or is killed, the whole flow stops. Only jobs that have ended, or
// are committing, keep their outputs.
//
// A result that only later jobs read, and that has no Output, is kept in the cluster's
// staging directory until the flow ends. With the property quern.flow.keep, set for
// one job or for all, it is kept in a directory of the flow's output instead. If the
// file system loses such a file, the job that reads it fails and names the file: the
// flow does not recompute it.
type Flow struct {
	Name string
	Jobs []*Job
}

// Job returns a job that writes the result.
func (r *Result[K, V]) Job(name string) *Job {
	j := &Job{Name: name}
	if r != nil {
		j.stage = r.stage
	}
	return j
}

// jobSpec is the part of a job's description that its functions need.
type jobSpec struct {
	format    Format
	outputs   []string
	noCombine bool
	places    *atomic.Bool // set when a map asks for the place of a record; may be nil
	host      func(*mrruntime.Task) host

	broadcasts []*broadcast // small sides; their index names their side files
	tables     []*broadcastSlot
}

// Number is any type with addition.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum adds two values, for [Fold] or Combine. The order of additions is not fixed, so
// sums of floating-point numbers may differ between runs.
func Sum[N Number](a, b N) N { return a + b }

// Min returns the smaller value, for [Fold] or Combine.
func Min[T cmp.Ordered](a, b T) T { return min(a, b) }

// Max returns the larger value, for [Fold] or Combine.
func Max[T cmp.Ordered](a, b T) T { return max(a, b) }
