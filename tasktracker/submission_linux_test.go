package tasktracker

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// slowStarter makes the directories of jobs, as an isolated worker needs them, and then starts no worker.
type slowStarter struct{ begun, resume, made chan struct{} }

func (slowStarter) Isolate(isolation.Config, *account.Account) error { return nil }

func (s slowStarter) Start(p *workers.Program, _ string) (workers.Worker, error) {
	close(s.begun)
	<-s.resume
	for _, dir := range p.Jobs {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	close(s.made)
	return nil, errors.New("this test starts no worker")
}

// TestSubmissionEndsWhileWorkerStarts: directories that are made for a worker after its job has ended are removed.
func TestSubmissionEndsWhileWorkerStarts(t *testing.T) {
	s := slowStarter{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	l := startSubmission(t, Config{Workers: s, Isolation: Isolation{Level: isolation.Namespace}}, new(wire.Submission))
	l.launch(wire.Map, 0, doSucceed)
	receive(t, s.begun, "the start of a worker")
	l.send(&wire.DropJob{Epoch: 1, Job: job1, EndedStaging: l.staging})
	l.final(l.launch(wire.Map, 1, doSucceed), wire.AttemptKilled) // so the job has ended here
	close(s.resume)
	receive(t, s.made, "the job's directories")
	for begin := time.Now(); time.Since(begin) < deadline; runtime.Gosched() {
		if left, err := os.ReadDir(l.path(core.JobsDir)); len(left) == 0 && err == nil {
			return
		}
	}
	mustBeEmpty(t, l.path(core.JobsDir))
}
