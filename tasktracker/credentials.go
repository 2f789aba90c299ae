package tasktracker

import (
	"errors"
	"os"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
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

// prepare gets what a worker needs before it starts: the submission, its program, and tokens. The
// submission has the owner that the leader has authenticated, whatever the staged file says.
func (l *loop) prepare(c core.StartWorker, staged *program.Submission) (*wire.Submission, *os.File, error) {
	files, err := l.stagingOf(c)
	if err != nil {
		return nil, nil, err
	}
	sub, exe, err := staged.PrepareFrom(files, c.Digest)
	if errors.Is(err, dfs.ErrActAs) {
		err = &credentials.RefusedError{Err: err}
	}
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

// stagingOf returns the file system of a staged submission. In a staging directory of HDFS, the client
// has staged it as the daemons' user or, if the job trackers have said so, as the job's owner. It refuses
// a submission that its workers could not read.
func (l *loop) stagingOf(c core.StartWorker) (dfs.FS, error) {
	own := c.Owner != "" && core.Within(wire.UserStaging(c.Root, c.Owner), c.Staging)
	err := ""
	switch users := dfs.UsersOf(l.cfg.FS, c.Staging); {
	case l.cfg.HDFS.AsOwner && c.Owner == "":
		err = "the job has no owner, and workers use HDFS as the job's owner"
	case users == nil:
		return local.Confined(l.cfg.FS, c.Root), nil
	case l.cfg.HDFS.AsOwner && !own:
		err = "the submission is not in the HDFS directory of the job's owner: start all job trackers with -hdfs-as-owner, as this task tracker"
	case !l.cfg.HDFS.AsOwner && own:
		err = "the submission is in the HDFS directory of the job's owner: start this task tracker with -hdfs-as-owner, as the job trackers"
	case own:
		return users.ActAs(c.Owner), nil
	default:
		return l.cfg.FS, nil
	}
	return nil, &credentials.RefusedError{Err: errors.New(err)}
}

func (l *loop) credentialsFor(c core.StartWorker, sub *wire.Submission) error {
	if l.cfg.HDFS.Delegate == nil {
		return nil
	}
	user := ""
	if l.cfg.HDFS.AsOwner {
		user = c.Owner
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
