package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/isolation/enter"
	"github.com/quernmr/quern/wire"
)

// submission shows what a submission names.
func (p *planner) submission(sub *wire.Submission, replaced []string) error {
	if err := p.showSession(sub); err != nil {
		return err
	}
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
	return nil
}

// showSession shows the session of the driver that made the submission: results of earlier steps are read
// there, and this one's result appears there. It is in the directory of sessions beside the submission's.
func (p *planner) showSession(sub *wire.Submission) error {
	if sub.Program.Step == nil {
		return nil
	}
	all, err := local.Path(dfs.Join(dfs.Dir(sub.Staging), wire.StagingSessions))
	if err != nil {
		return nil
	}
	path, err := local.Path(dfs.Dir(sub.Program.Step.Result))
	if err != nil {
		return nil
	}
	parent, _, err := p.resolve(all)
	if err != nil {
		return fmt.Errorf("session %s: %w", path, err)
	}
	real, found, err := p.resolve(path)
	if err != nil {
		return fmt.Errorf("session %s: %w", path, err)
	}
	if !found || filepath.Dir(real) != parent {
		return nil // then it is an output like others
	}
	p.session = real
	return p.showOwn(real, enter.Step{Write: true, Named: true})
}

// ofSession reports whether a path is in the session.
func (p *planner) ofSession(real string) bool { return p.session != "" && within(real, p.session) }

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
	// An input that does not exist is the job's own error.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("input %s: %w", url, err)
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

// output makes the directory around an output and lets the worker write there.
func (p *planner) output(url string) error {
	path, err := local.Path(url)
	if err != nil {
		return nil
	}
	parent, found, err := p.resolve(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("output %s: %w", url, err)
	}
	if p.ofSession(parent) {
		return nil
	}
	if dir := p.hides(parent); dir != "" {
		return fmt.Errorf("output %s is in %s, where jobs cannot write (-isolation namespace)", url, dir)
	}
	if reason := forbidden(parent, p.daemonHome); reason != "" {
		other := "another directory"
		if parent == p.daemonHome {
			other = "a directory in it, such as " + filepath.Join(parent, "jobs", filepath.Base(path))
		}
		return fmt.Errorf("output %s: its job would write in the directory around it, and %s %s (-isolation namespace): choose an output in %s", url, parent, reason, other)
	}
	if slices.Contains(p.kept, parent) {
		return fmt.Errorf("output %s is in %s, where programs of the task tracker are: jobs cannot write there (-isolation namespace): choose another directory", url, parent)
	}
	if file := p.hiddenFile(parent); file != "" {
		return fmt.Errorf("output %s is in %s, where %s is: jobs cannot write there (-isolation namespace)", url, parent, file)
	}
	if !found {
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return fmt.Errorf("output %s: %w", url, err)
		}
	}
	return p.show(filepath.Dir(path), true)
}

// hiddenFile returns a hidden file below a directory, or "". A cover does not protect a file that its daemon
// replaces, such as a log.
func (p *planner) hiddenFile(dir string) string {
	for _, path := range p.hidden {
		if info, err := os.Lstat(path); err == nil && !info.IsDir() && within(path, dir) {
			return path
		}
	}
	return ""
}

// forbidden returns why no job may write in a directory, or "": in some, there are programs that other accounts or
// the daemon's account execute or read, or a job could put some there, such as .profile.
func forbidden(dir, home string) string {
	const ofSystem = "is a directory of the system"
	if dir == "/" || dir == "/home" || dir == "/var" {
		return ofSystem
	}
	if home != "" {
		switch rest, below := strings.CutPrefix(dir, home+"/"); {
		case dir == home:
			return "is the home directory of the task tracker's account"
		case below && strings.HasPrefix(rest, "."):
			return "is in the home directory of the task tracker's account and begins with a dot"
		case below:
			return ""
		case within(home, dir):
			return "has the home directory of the task tracker's account in it"
		}
	}
	if !strings.HasPrefix(dir, "/dev/shm/") && slices.ContainsFunc(neverWritable, func(system string) bool { return within(dir, system) }) {
		return ofSystem
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
