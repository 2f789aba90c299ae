// Package failed runs jobs that must fail, for tests of formats.
package failed

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// Run runs a job and returns its error; nil if it succeeds.
func Run(t testing.TB, job *mapreduce.Job, files map[string]string) error {
	t.Helper()
	f := &first{TB: t}
	done := make(chan struct{})
	go func() { // Fatal ends it
		defer close(done)
		mrtest.RunFiles(f, job, files)
	}()
	<-done
	return f.err
}

// first keeps the first failure of a test.
type first struct {
	testing.TB
	err error
}

func (f *first) Fatal(args ...any) {
	f.Error(args...)
	runtime.Goexit()
}

func (f *first) Error(args ...any) {
	if f.err == nil {
		f.err = errors.New(fmt.Sprint(args...))
	}
}
