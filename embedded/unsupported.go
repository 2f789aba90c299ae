//go:build !unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// errUnsupported is the answer of all functions here: job programs build, but task trackers need Unix.
var errUnsupported = errors.New("jobs run on Linux and macOS only: on Windows, run this program in WSL, or build it with GOOS=linux for a cluster")

// Config describes a cluster.
type Config struct {
	Slots    int
	Trackers int
	Dir      string
	FS       dfs.FS
	Load     runtime.Load
}

// Cluster is a running cluster; here there is none.
type Cluster struct{}

// Supported returns why there is no cluster here.
func Supported() error { return errUnsupported }

func Start(Config) (*Cluster, error) { return nil, errUnsupported }

func (*Cluster) FS() dfs.FS { return nil }

func (*Cluster) Staging() string { return "" }

func (*Cluster) Submit(context.Context, wire.Submission) ([]wire.JobID, error) {
	return nil, errUnsupported
}

func (*Cluster) Find(context.Context, string) ([]wire.JobID, error) { return nil, errUnsupported }

func (*Cluster) Watch(context.Context, []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) { yield(nil, errUnsupported) }
}

func (*Cluster) Close() error { return nil }

// Run prints why the submission cannot run, and returns the exit code.
func Run(*wire.Submission, runtime.Load) int {
	fmt.Fprintf(os.Stderr, "error: %v\n", errUnsupported)
	return 1
}

// Steps runs the submissions of one program; here it runs none.
type Steps struct {
	Changed func() func([]wire.JobStatus)
}

func NewSteps(runtime.Load, io.Writer, func() int, <-chan struct{}, bool) *Steps { return &Steps{} }

func (*Steps) Start(*wire.Submission) (dir string, err error) { return "", errUnsupported }

func (*Steps) Run(context.Context, *wire.Submission) ([]wire.EndedJob, error) {
	return nil, errUnsupported
}

func (*Steps) Find(context.Context, *wire.Submission) ([]wire.EndedJob, error) {
	return nil, errUnsupported
}

func (*Steps) Close() error { return nil }

func Sessions(string) (string, error) { return "", errUnsupported }
