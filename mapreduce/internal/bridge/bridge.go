// Package bridge lets the packages below mapreduce use what it keeps from
// authors: the making of a program from a job or flow. It decides nothing.
package bridge

import (
	"fmt"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Settings are what a program is made with, beside the job itself: what the
// command line says.
type Settings struct {
	Inputs     []string          // of inputs that name no paths: -input
	Output     string            // -output
	Properties map[string]string // -D
	Dir        string            // path or URL that relative paths are relative to; empty: the working directory

	// For package mrtest:
	Defaults  map[string]string // of properties that neither the job nor Properties sets
	NoCombine bool              // leave combiners out, to see whether the output depends on them
	Text      bool              // write lines, whatever the jobs' formats
}

// Compiled is a job or flow as functions on bytes.
type Compiled struct {
	Program  *mrruntime.Program
	Warnings []string // one sentence each
	Given    bool     // Settings.Inputs are read

	// Texts show a record of map output, by job and its inputs; none of a map-only job.
	Texts [][]func(key, value []byte) string
}

// Compiler is *mapreduce.Job and *mapreduce.Flow.
type Compiler interface {
	Compile(Settings) (*Compiled, error)
}

// UsageError is an error of the command line, as against one of the job: it ends
// the program with exit code 2.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usagef makes one.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
