// Package bridge gives packages below mapreduce access to the compilation of jobs,
// which is hidden from authors. It decides nothing.
package bridge

import (
	"fmt"
	"sync/atomic"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Shared has values that the attempts of a submission share in a process, although each attempt builds the job again.
// Compilations that use it must not run at the same time.
type Shared struct {
	staging string
	values  map[[2]int]any // by the job's number and a number in it
}

// For returns the values of a submission, and forgets those of the last one.
func (s *Shared) For(staging string) *Shared {
	if s.staging != staging || s.values == nil {
		*s = Shared{staging, make(map[[2]int]any)}
	}
	return s
}

// Value returns a value, which create makes at first.
func (s *Shared) Value(job, n int, create func() any) any {
	key := [2]int{job, n}
	if s.values[key] == nil {
		s.values[key] = create()
	}
	return s.values[key]
}

// Settings are the settings of the command line for a compilation.
type Settings struct {
	Inputs     []string          // -input, for inputs without paths
	Output     string            // -output
	Properties map[string]string // -D
	Dir        string            // path or URL for relative paths; empty: the working directory
	Shared     *Shared           // for the job's attempts in this process; nil: each compilation has its own
	Step       bool              // the job is a step of a driver: Output takes its result in the format Binary, unless it names an output

	// For package mrtest:
	Defaults  map[string]string // of properties that neither the job nor Properties sets
	NoCombine bool              // run without combiners, to check that the output stays the same
	Text      bool              // write lines instead of the jobs' formats
	Places    *atomic.Bool      // set when a map asks for the place of a record; may be nil
	Session   string            // -session of a driver
}

// Compiled is a job or flow as functions on bytes.
type Compiled struct {
	Program    *mrruntime.Program
	Warnings   []string // one sentence each
	ReadsInput bool     // a job reads Settings.Inputs
}

// Compiler is implemented by *mapreduce.Job and *mapreduce.Flow.
type Compiler interface {
	Compile(Settings) (*Compiled, error)
}

// Definition makes the jobs of one step of a program that drives jobs.
type Definition interface {
	Name() string
	// Build builds the job from its parameters, as JSON.
	Build(params []byte) (Compiler, error)
}

// UsageError is an error in the command line, not in the job. The program exits with
// code 2.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
