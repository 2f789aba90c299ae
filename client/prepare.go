package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Prepare cleans a plan's paths, and checks with [runtime.Check] that the jobs can begin. Errors
// name the path.
func Prepare(ctx context.Context, files dfs.FS, plan *wire.Plan) error {
	if len(plan.Jobs) == 0 {
		return errors.New("the plan has no jobs")
	}
	writers := make(map[string]string) // job that writes an output
	for i := range plan.Jobs {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("before anything was submitted: %w", context.Cause(ctx))
		}
		job := &plan.Jobs[i]
		if err := prepareJob(files, job); err != nil {
			return fmt.Errorf("job %s: %w", job.Name, err)
		}
		if job.Output == "" {
			continue
		}
		if other, taken := writers[job.Output]; taken {
			return fmt.Errorf("jobs %s and %s have the same output: %s", other, job.Name, job.Output)
		}
		writers[job.Output] = job.Name
	}
	return runtime.Check(files, plan)
}

func prepareJob(files dfs.FS, job *wire.JobPlan) (err error) {
	for i := range job.Inputs {
		in := &job.Inputs[i]
		for j := range in.Paths {
			if in.Paths[j], err = dfs.Clean(in.Paths[j]); err != nil {
				return fmt.Errorf("input: %w", err)
			}
		}
	}
	for name, p := range job.Files {
		if job.Files[name], err = dfs.Clean(p); err != nil {
			return fmt.Errorf("%s: %w", runtime.SideName(name), err)
		}
		if _, err := runtime.SideFiles(files, name, job.Files[name]); err != nil {
			return fmt.Errorf("%s: %w", runtime.SideName(name), err)
		}
	}
	if job.Output == "" {
		return nil
	}
	if job.Output, err = dfs.Clean(job.Output); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// Stage gives the submission a random key if it has none, makes a staging directory with that name below root, and
// writes the submission there. Only the file system's user can read it: clients and daemons must
// run as the same user.
func Stage(files dfs.FS, root string, sub *wire.Submission) error {
	sub.Key = cmp.Or(sub.Key, rand.Text())
	sub.Staging, sub.Digest = dfs.Join(root, sub.Key), nil
	frame, err := wire.Append(nil, sub)
	if errors.Is(err, wire.ErrFrameTooLarge) {
		err = fmt.Errorf("%w: %w", wire.ErrTooLarge, err)
	}
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	sub.Digest = wire.StagedDigest(frame)
	files = dfs.Private(files)
	if err := files.MkdirAll(root); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := files.Mkdir(sub.Staging); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	err = writeNew(files, dfs.Join(sub.Staging, wire.StagedSubmission), frame)
	if err == nil { // so that an acknowledged job survives a power failure
		err = errors.Join(files.SyncDir(sub.Staging), files.SyncDir(root))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("stage: %w", err), files.RemoveAll(sub.Staging))
	}
	return nil
}

func writeNew(files dfs.FS, name string, content []byte) error {
	w, err := files.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}
