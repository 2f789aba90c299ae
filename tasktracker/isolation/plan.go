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
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation/enter"
)

// systemDirs are directories with the programs and the configuration of the system. Those that do not
// exist are left out.
var systemDirs = []string{
	"/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/sys", "/usr",
}

// neverWritable are directories in and below which no job may have its output. In /, /home and /var
// themselves it may not, either.
var neverWritable = append([]string{"/boot", "/dev", "/proc", "/root", "/run"}, systemDirs...)

// pathVariables are variables with paths that a worker needs. The value may have a prefix such as FILE:.
var pathVariables = []string{
	"HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_TOKEN_FILE_LOCATION", "JAVA_HOME",
	"KRB5CCNAME", "KRB5_CONFIG", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZDIR",
}

// tmpName is the directory in a worker's directory that it has as /tmp.
const tmpName = core.PrivateTmp

// planner collects the steps of a plan.
type planner struct {
	home       string                // of the worker's account, which it sees empty; empty: unknown or /
	daemonHome string                // of the daemon's account
	named      bool                  // the submission names the paths that are added
	hidden     []string              // without symbolic links
	kept       []string              // directories of Config.Kept, without symbolic links
	outputs    []string              // directories of Config.Outputs, without symbolic links
	temp       []string              // directories for temporary files, without symbolic links
	sockets    []string              // below paths that the submission names
	own        string                // the submission's staging directory, may be in hidden; empty: not local
	results    string                // Worker.Results without symbolic links
	links      map[string]enter.Step // by At
	binds      map[string]enter.Step // by At
	last       []enter.Step          // after the covers of hidden directories
}

// Plan returns the steps for a worker. It makes the worker's private directory, and missing directories around
// outputs.
func (c *Config) Plan(w *Worker) (*enter.Plan, error) {
	p := &planner{links: make(map[string]enter.Step), binds: make(map[string]enter.Step)}
	if c.Home != "" {
		if err := p.setHome(c.Home); err != nil {
			return nil, err
		}
		p.daemonHome = p.home
	}
	sub := w.Submission
	for _, dir := range append(c.allHidden(), dfs.Dir(sub.Staging)) {
		if path, err := local.Path(dir); err == nil {
			real, _, err := p.resolve(path)
			if err != nil {
				return nil, err
			}
			p.hidden = append(p.hidden, real)
		}
	}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{c.Kept, &p.kept}, {c.Outputs, &p.outputs}, {[]string{"/tmp", "/var/tmp", "/dev/shm", os.TempDir()}, &p.temp}} {
		for _, dir := range list.from {
			real, _, err := p.resolve(dir)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, real)
		}
	}
	if err := p.system(c); err != nil {
		return nil, err
	}
	if err := p.worker(w); err != nil {
		return nil, err
	}
	p.named = true
	if err := w.Account.Do(func() error { return p.submission(sub, c.Replaced) }); err != nil {
		return nil, err
	}
	return &enter.Plan{UID: os.Geteuid(), GID: os.Getegid(), User: w.Account.User(), Root: w.Dir, Dir: w.Dir, Tasks: MaxTasks, Steps: p.steps()}, nil
}

// setHome sets the home directory that the worker sees empty.
func (p *planner) setHome(dir string) error {
	home, _, err := p.resolve(dir)
	if err != nil {
		return fmt.Errorf("home directory of the account: %w", err)
	}
	if info, err := os.Lstat(home); err == nil && !info.IsDir() {
		home = "" // such as /dev/null, on which no directory can be mounted
	}
	p.home = strings.TrimSuffix(home, "/")
	return nil
}

// secretFiles are files of the system that only root's programs need.
var secretFiles = []string{"/etc/gshadow", "/etc/krb5.keytab", "/etc/quern", "/etc/shadow", "/etc/ssh", "/etc/ssl/private"}

// rootFiles are directories of the system that other users cannot read.
var rootFiles = []string{"/sys/firmware", "/sys/fs/bpf", "/sys/kernel/debug", "/sys/kernel/tracing"}

// allHidden returns what no job may see. In the home directory of the daemon's account all entries that begin
// with a dot are hidden, because they have keys and scripts.
func (c *Config) allHidden() []string {
	hidden := append(slices.Clone(c.Hidden), secretFiles...)
	if os.Geteuid() == 0 {
		hidden = append(hidden, rootFiles...)
	}
	if c.Home == "" || c.Home == "/" {
		return hidden
	}
	entries, _ := os.ReadDir(c.Home) // one that cannot be read has nothing to hide
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			hidden = append(hidden, filepath.Join(c.Home, e.Name()))
		}
	}
	return hidden
}

// system shows what all workers see.
func (p *planner) system(c *Config) error {
	for _, dir := range append(slices.Clone(systemDirs), c.Shown...) {
		if err := p.show(dir, false); err != nil {
			return err
		}
	}
	// It is often a link into /run, and replaced by a rename.
	if real, found, err := p.resolve("/etc/resolv.conf"); err == nil && found && !within(real, "/etc") {
		return p.show(filepath.Dir(real), false)
	}
	return nil
}

// worker shows the worker's own directories.
func (p *planner) worker(w *Worker) error {
	tmp := filepath.Join(w.Dir, tmpName)
	if err := errors.Join(w.Account.MakeDir(w.Dir), w.Account.MakeDir(tmp)); err != nil {
		return err
	}
	if w.Account != nil {
		if err := p.setHome(w.Account.Home); err != nil {
			return err
		}
	}
	tmp, _, err := p.resolve(tmp)
	if err != nil {
		return err
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		at, _, err := p.resolve(dir)
		if err != nil {
			return err
		}
		p.binds[at] = enter.Step{Kind: enter.Bind, At: at, From: tmp, Write: true}
	}
	if err := p.showOwn(w.Dir, enter.Step{}); err != nil {
		return err
	}
	for _, dir := range w.Jobs {
		if err := w.Account.MakeDir(dir); err != nil {
			if err := ofOther(err); err != nil {
				return err
			}
			continue // a bad disk, on which no attempt starts
		}
		if err := p.showOwn(dir, enter.Step{Write: true, Optional: true}); err != nil {
			return err
		}
	}
	if staging, err := local.Path(w.Submission.Staging); err == nil {
		if err := p.showOwn(staging, enter.Step{Write: true}); err != nil {
			return err
		}
		p.own, _, _ = p.resolve(staging)
	}
	if w.Results != "" { // with the daemon's rights: the account's may not lead there
		if err := p.showOwn(w.Results, enter.Step{Write: true}); err != nil {
			return err
		}
		p.results, _, _ = p.resolve(w.Results)
	}
	for _, v := range w.Env {
		name, value, _ := strings.Cut(v, "=")
		if !slices.Contains(pathVariables, name) {
			continue
		}
		for _, path := range strings.Split(value, ":") {
			if filepath.IsAbs(path) { // else it is a prefix such as FILE
				if err := p.showOwn(path, enter.Step{Optional: true}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pin makes each directory between a writable one and a path a mount. The system renames no mounts. Otherwise
// a job could rename the directory, and the next job would see what is hidden. It reports whether there is a writable one.
func (p *planner) pin(path string) (writable bool) {
	var between []string
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if b, ok := p.binds[dir]; ok && b.From == dir {
			if b.Write {
				writable = true
				for _, d := range between {
					p.binds[d] = enter.Step{Kind: enter.Bind, At: d, From: d, Write: true}
				}
			}
			between = nil // a writable one may be further out
			continue
		}
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			between = append(between, dir)
		}
	}
	return writable
}

// show shows a path of the machine, if it exists.
func (p *planner) show(path string, write bool) error {
	real, found, err := p.resolve(path)
	if err != nil || !found {
		return err
	}
	if old, ok := p.binds[real]; ok && old.From == real && (old.Write || !write) {
		return nil
	}
	p.binds[real] = enter.Step{Kind: enter.Bind, At: real, From: real, Write: write, Named: p.named}
	return nil
}

// showOwn shows a path that may be in a hidden directory.
func (p *planner) showOwn(path string, s enter.Step) error {
	real, found, err := p.resolve(path)
	if err != nil || !found {
		return err
	}
	s.Kind, s.At, s.From = enter.Bind, real, real
	p.last = append(p.last, s)
	return nil
}

// hides returns the hidden directory that a path is in, or "".
func (p *planner) hides(real string) string {
	for _, dir := range p.hidden {
		if within(real, dir) {
			return dir
		}
	}
	return ""
}

// steps returns the steps in order: outer directories before inner ones.
func (p *planner) steps() []enter.Step {
	steps := []enter.Step{{Kind: enter.Proc, At: "/proc"}, {Kind: enter.Empty, At: "/dev"}, {Kind: enter.Shm, At: "/dev/shm"}}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		steps = append(steps, enter.Step{Kind: enter.Bind, At: "/dev/" + name, From: "/dev/" + name, Write: true, Device: true})
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		p.links["/dev/"+name] = enter.Step{Kind: enter.Link, At: "/dev/" + name, From: "/proc/self/fd" + target}
	}
	hidden := slices.Concat(p.hidden, p.sockets)
	for _, path := range hidden {
		p.pin(path)
	}
	p.keep()
	var shown []enter.Step
	for _, s := range p.binds {
		if !p.redundant(s) {
			shown = append(shown, s)
		}
	}
	for at, s := range p.links {
		if _, ok := p.binds[at]; !ok {
			shown = append(shown, s)
		}
	}
	if _, bound := p.binds[p.home]; p.home != "" && !bound && !p.isShown(p.home) { // it exists, and may have inputs and the worker's directories in it
		shown = append(shown, enter.Step{Kind: enter.Empty, At: p.home})
	}
	byPath := func(a, b enter.Step) int { return strings.Compare(a.At, b.At) }
	slices.SortFunc(shown, byPath)
	steps = append(steps, shown...)
	for _, dir := range hidden {
		if info, err := os.Lstat(dir); err == nil && p.isShown(dir) {
			if info.IsDir() {
				steps = append(steps, enter.Step{Kind: enter.Empty, At: dir})
			} else {
				steps = append(steps, enter.Step{Kind: enter.Bind, At: dir, From: "/dev/null", Device: true})
			}
		}
	}
	slices.SortStableFunc(p.last, byPath)
	return append(steps, p.last...)
}

// redundant reports whether a read-only path is in another shown path.
func (p *planner) redundant(s enter.Step) bool {
	if s.Write {
		return false
	}
	var around enter.Step // the innermost one
	for _, other := range p.binds {
		if other.At != s.At && other.From == other.At && within(s.At, other.At) && len(other.At) > len(around.At) {
			around = other
		}
	}
	return around.At != "" && !around.Write && !p.tmpBetween(s.At, around.At)
}

// tmpBetween reports whether the private /tmp covers a path below a shown one.
func (p *planner) tmpBetween(inner, outer string) bool {
	for _, b := range p.binds {
		if b.From != b.At && within(inner, b.At) && within(b.At, outer) {
			return true
		}
	}
	return false
}

// isShown reports whether a path of the machine is in a shown one.
func (p *planner) isShown(path string) bool {
	for _, b := range p.binds {
		if b.From == b.At && within(path, b.At) {
			return true
		}
	}
	return false
}

// maxLinks limits the symbolic links of a path, as the system does.
const maxLinks = 40

// resolve returns a path without symbolic links, and whether it exists. The worker gets the links too.
func (p *planner) resolve(path string) (real string, found bool, err error) {
	rest := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	real, found = "/", true
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			found = false
		case err != nil:
			return "", false, err
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(next)
			if err != nil {
				return "", false, err
			}
			if links++; links > maxLinks {
				return "", false, fmt.Errorf("%s has too many symbolic links", path)
			}
			p.links[next] = enter.Step{Kind: enter.Link, At: next, From: target}
			if filepath.IsAbs(target) {
				real = "/"
			}
			rest = append(strings.Split(strings.Trim(target, "/"), "/"), rest...)
			continue
		}
		real = next
	}
	return real, found, nil
}

// within reports whether a path is a directory or in it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
