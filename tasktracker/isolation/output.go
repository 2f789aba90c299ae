package isolation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs/local"
)

// RootOutputs are the directories of Config.Outputs for a daemon of root that gives its workers no account. Root can write
// everywhere, and other programs execute files in many places: no list of these is complete.
var RootOutputs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// RefusedError reports an output in a directory in which this task tracker lets no job write. The others would refuse it
// too: they have the same system directories and, in a cluster, the same -job-outputs.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// output makes the directory around an output and lets the worker write there.
func (p *planner) output(url string) error {
	path, parent, found, err := p.around(url)
	if err != nil || path == "" || p.ofSession(parent) {
		return err
	}
	if err := p.permits(url, path, parent); err != nil {
		return err
	}
	if !found {
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return fmt.Errorf("output %s: %w", url, err)
		}
	}
	return p.show(filepath.Dir(path), true)
}

// laterOutput refuses an output that a later job of a driver will have, before the driver's first job does its work.
func (p *planner) laterOutput(url string) error {
	path, parent, _, err := p.around(url)
	if err != nil || path == "" {
		return err
	}
	return p.permits(url, path, parent)
}

// around returns the path of an output and the directory around it, without links, as resolve does; "": it is not local.
func (p *planner) around(url string) (path, parent string, found bool, err error) {
	if path, err = local.Path(url); err != nil {
		return "", "", false, nil
	}
	if parent, found, err = p.resolve(filepath.Dir(path)); err != nil {
		err = fmt.Errorf("output %s: %w", url, err)
	}
	return path, parent, found, err
}

// permits returns an error if no job may have an output at a path. Parent is the directory around it, without links.
func (p *planner) permits(url, path, parent string) error {
	if dir := p.hides(parent); dir != "" {
		return fmt.Errorf("output %s is in %s, where jobs cannot write (-isolation namespace)", url, dir)
	}
	if reason := p.forbids(parent); reason != "" {
		return &RefusedError{fmt.Errorf("output %s: its job would write in the directory around it, and %s %s (-isolation namespace): choose an output in %s", url, parent, reason, p.otherThan(parent, filepath.Base(path)))}
	}
	if err := p.apart(parent); err != nil {
		return fmt.Errorf("output %s is %w", url, err)
	}
	if slices.Contains(p.kept, parent) {
		return fmt.Errorf("output %s is in %s, where programs of the task tracker are: jobs cannot write there (-isolation namespace): choose another directory", url, parent)
	}
	if file := p.hiddenFile(parent); file != "" {
		return fmt.Errorf("output %s is in %s, where %s is: jobs cannot write there (-isolation namespace)", url, parent, file)
	}
	return nil
}

// otherThan names a place where jobs may write an output of this name, for the error about a directory where they may not.
func (p *planner) otherThan(parent, name string) string {
	dirs := p.outputs
	if parent == p.daemonHome || p.isTemp(parent) {
		dirs = append([]string{parent}, dirs...)
	}
	for _, dir := range dirs {
		if below := filepath.Join(dir, "jobs"); p.forbids(below) == "" {
			return "a directory in " + dir + ", such as " + filepath.Join(below, name)
		}
	}
	return "another directory"
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

// forbids returns why no job may write in a directory, or "".
func (p *planner) forbids(dir string) string {
	if p.isTemp(dir) {
		return "is where programs have sockets and other temporary files"
	}
	if reason := forbidden(dir, p.daemonHome); reason != "" {
		return reason
	}
	if len(p.outputs) > 0 && !slices.ContainsFunc(p.outputs, func(d string) bool { return within(dir, d) }) {
		return "is in no directory of tasktracker -job-outputs (" + strings.Join(p.outputs, ",") + ")"
	}
	return ""
}

// isTemp reports whether a path is a directory for temporary files. Programs outside of namespaces have sockets there, by which
// a job could start others.
func (p *planner) isTemp(real string) bool { return slices.Contains(p.temp, real) }

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
