package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

var (
	// ErrNoInput reports an input that is missing or that a pattern does not match.
	ErrNoInput = errors.New("no such input")
	// ErrOutputExists reports an output that is there already: nothing is overwritten.
	ErrOutputExists = errors.New("output exists")
)

// Prepare puts a plan's paths into their cleaned form and fails where the jobs
// could not begin: [ErrNoInput], [ErrOutputExists], dfs.ErrUnknownScheme, or what
// the file system says. Errors name the path.
func Prepare(ctx context.Context, files dfs.FS, plan *wire.Plan) error {
	if len(plan.Jobs) == 0 {
		return errors.New("the plan has no jobs")
	}
	writers := make(map[string]string) // output to job
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
			return fmt.Errorf("jobs %s and %s have one output: %s", other, job.Name, job.Output)
		}
		writers[job.Output] = job.Name
	}
	return nil
}

func prepareJob(files dfs.FS, job *wire.JobPlan) (err error) {
	for i := range job.Inputs {
		in := &job.Inputs[i]
		for j := range in.Paths {
			if in.Paths[j], err = dfs.Clean(in.Paths[j]); err != nil {
				return fmt.Errorf("input: %w", err)
			}
			if err := checkInput(files, in.Paths[j]); err != nil {
				return err
			}
		}
	}
	for name, p := range job.Files {
		if job.Files[name], err = dfs.Clean(p); err != nil {
			return fmt.Errorf("side file %s: %w", name, err)
		}
		if _, err := files.Stat(job.Files[name]); err != nil {
			return fmt.Errorf("side file %s: %w", name, err)
		}
	}
	if job.Output == "" {
		return nil
	}
	if job.Output, err = dfs.Clean(job.Output); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	switch _, err := files.Stat(job.Output); {
	case err == nil:
		if _, err := files.Stat(dfs.Join(job.Output, "_temporary")); err == nil {
			return fmt.Errorf("%w: %s: a job is writing there, or has been cut off; if none runs, remove it", ErrOutputExists, job.Output)
		}
		return fmt.Errorf("%w: %s", ErrOutputExists, job.Output)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// checkInput opens what is there: a file or directory without the right to read
// it is found here.
func checkInput(files dfs.FS, name string) error {
	info, err := files.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPattern(name):
		return checkPattern(files, name)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s: %w", ErrNoInput, name, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("input: %w", err)
	case info.Dir:
		_, err = files.List(name)
	default:
		var f dfs.File
		if f, err = files.Open(name); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

func isPattern(name string) bool { return strings.ContainsAny(name, `*?[{\`) }

// checkPattern looks for one name that matches. Alternatives in braces are left
// to the setup attempt, but the directory before them must be there.
func checkPattern(files dfs.FS, pattern string) error {
	root, rest := fixedDir(pattern)
	elems := strings.Split(rest, "/")
	found, err := anyMatch(files, root, elems)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !found:
		return fmt.Errorf("%w: nothing matches %s", ErrNoInput, pattern)
	case err != nil:
		return fmt.Errorf("input %s: %w", pattern, err)
	}
	return nil
}

// fixedDir cuts a pattern before its first element with a special character.
func fixedDir(pattern string) (dir, rest string) {
	dir, rest = pattern, ""
	for isPattern(dir) && dfs.Dir(dir) != dir {
		if rest != "" {
			rest = "/" + rest
		}
		dir, rest = dfs.Dir(dir), dfs.Base(dir)+rest
	}
	return dir, rest
}

func anyMatch(files dfs.FS, dir string, elems []string) (bool, error) {
	entries, err := files.List(dir)
	if err != nil {
		return false, err
	}
	if strings.Contains(elems[0], "{") {
		return true, nil
	}
	for _, e := range entries {
		base := dfs.Base(e.Name)
		if (base[0] == '_' || base[0] == '.') && elems[0][0] != base[0] {
			continue // hidden from jobs
		}
		ok, err := path.Match(elems[0], base)
		if err != nil {
			return false, err
		}
		if ok && len(elems) > 1 {
			if !e.Dir {
				continue
			}
			if ok, err = anyMatch(files, e.Name, elems[1:]); err != nil {
				return false, err
			}
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

// Stage gives the submission a random key and a staging directory of that name
// below root, and writes the submission there.
func Stage(files dfs.FS, root string, sub *wire.Submission) error {
	sub.Key = rand.Text()
	sub.Staging = dfs.Join(root, sub.Key)
	frame, err := wire.Append(nil, sub)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := files.MkdirAll(root); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := files.Mkdir(sub.Staging); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := writeNew(files, dfs.Join(sub.Staging, wire.StagedSubmission), frame); err != nil {
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
