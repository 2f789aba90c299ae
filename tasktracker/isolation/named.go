package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// submission shows what a submission names.
func (p *planner) submission(sub *wire.Submission, replaced []string) error {
	for i := range sub.Plan.Jobs {
		job := &sub.Plan.Jobs[i]
		for _, in := range job.Inputs {
			for _, url := range in.Paths {
				if err := p.input(url, replaced); err != nil {
					return err
				}
			}
		}
		for _, url := range job.Files {
			if err := p.input(url, replaced); err != nil {
				return err
			}
		}
		if job.Output == "" {
			continue // in the staging directory
		}
		if err := p.output(job.Output); err != nil {
			return err
		}
	}
	if step := sub.Program.Step; step != nil && step.Output != "" {
		return p.laterOutput(step.Output)
	}
	return nil
}

// ofSession reports whether a path is in the results of the session.
func (p *planner) ofSession(real string) bool { return p.results != "" && within(real, p.results) }

// input shows an input or side file of the submission, in which no replaced file may be. A missing one is the
// job's own error.
func (p *planner) input(url string, replaced []string) error {
	path, err := local.Path(url)
	if err != nil {
		return nil // of another file system
	}
	path = beforeGlob(path)
	real, _, err := p.resolve(path)
	if err != nil {
		return fmt.Errorf("input %s: %w", url, err)
	}
	if p.own != "" && within(real, p.own) || p.ofSession(real) {
		return nil
	}
	if real == "/" {
		return fmt.Errorf("input %s is the whole file system, which jobs cannot read (-isolation namespace)", url)
	}
	if dir := p.hides(real); dir != "" {
		return fmt.Errorf("input %s is in %s, which jobs cannot read (-isolation namespace)", url, dir)
	}
	if dir := neverRead(real); dir != "" && !p.isShown(real) {
		return fmt.Errorf("input %s is in %s, which has processes, devices and sockets of the machine (-isolation namespace): only -job-paths of the task tracker can show it", url, dir)
	}
	if p.isTemp(real) {
		return fmt.Errorf("input %s is all of %s, where programs have sockets (-isolation namespace): name files or directories in it", url, real)
	}
	// An input that does not exist is the job's own error.
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("input %s: %w", url, err)
	case err == nil && info.Mode()&fs.ModeSocket != 0:
		return fmt.Errorf("input %s is a socket, which jobs cannot use (-isolation namespace)", url)
	}
	if err := p.apart(real); err != nil {
		return fmt.Errorf("input %s is %w", url, err)
	}
	for _, file := range replaced {
		if f, _, err := p.resolve(file); err == nil && within(f, real) {
			return fmt.Errorf("input %s is %s, where %s is, which jobs cannot read (-isolation namespace)", url, real, f)
		}
	}
	return p.show(path, false)
}

// neverRead returns the directory with a path in which a job may have no input, or "". A socket of a daemon there, such as
// that of the account's systemd, would start programs outside of the job's namespaces.
func neverRead(real string) string {
	for _, dir := range []string{"/dev", "/proc", "/run"} {
		if within(real, dir) && !within(real, "/dev/shm") {
			return dir
		}
	}
	return ""
}

// beforeGlob returns the part of a path before its first pattern.
func beforeGlob(path string) string {
	if i := strings.IndexAny(path, `*?[{\`); i >= 0 {
		return filepath.Dir(path[:i] + "x")
	}
	return path
}
