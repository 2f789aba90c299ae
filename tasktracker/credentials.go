package tasktracker

import (
	"errors"
	"os"
	"strings"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/credentials"
	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/wire"
)

// HDFS says how workers log in.
type HDFS struct {
	Delegate credentials.Issue // gets tokens for workers; nil: they log in themselves
	AsOwner  bool              // they act as the job's owner, not as this process's user
}

// ErrStagingInHDFS reports workers that act as the job's owner and cannot use staged files.
var ErrStagingInHDFS = errors.New("workers that use HDFS as the job's owner need a staging directory outside of HDFS: staged files belong to the user of the daemons")

// prepare gets what a worker needs before it starts: the submission, its program, and tokens. The
// submission has the owner that the leader has authenticated, whatever the staged file says.
func (l *loop) prepare(c core.StartWorker, staged *program.Submission) (*wire.Submission, *os.File, error) {
	sub, exe, err := staged.Prepare(c.Digest)
	if err != nil {
		return nil, nil, err
	}
	own := *sub
	own.Owner = c.Owner
	if err = l.credentialsFor(c, &own); err != nil && exe != nil {
		err = errors.Join(err, exe.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	return &own, exe, nil
}

func (l *loop) credentialsFor(c core.StartWorker, sub *wire.Submission) error {
	user := ""
	if l.cfg.HDFS.AsOwner {
		switch user = c.Owner; {
		case user == "":
			return &credentials.RefusedError{Err: errors.New("the job has no owner, and workers use HDFS as the job's owner")}
		case strings.HasPrefix(c.Staging, "hdfs:"):
			return &credentials.RefusedError{Err: ErrStagingInHDFS}
		}
	}
	if l.cfg.HDFS.Delegate == nil {
		return nil
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return err
	}
	return l.credentials.Prepare(c.Staging, user, urls(c.Staging, &sub.Plan), c.Dir)
}

// urls lists the files that a submission's workers use.
func urls(staging string, plan *wire.Plan) []string {
	all := []string{staging}
	for i := range plan.Jobs {
		j := &plan.Jobs[i]
		for _, in := range j.Inputs {
			all = append(all, in.Paths...)
		}
		for _, file := range j.Files {
			all = append(all, file)
		}
		if j.Output != "" {
			all = append(all, j.Output)
		}
	}
	return all
}

// forgetCredentials cancels the tokens of a submission without jobs here.
func (l *loop) forgetCredentials(staging string) {
	if cancel := l.credentials.Forget(staging); cancel != nil {
		l.detached(cancel)
	}
}
