package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/core"
)

// cgroups makes a control group (version 2) for each worker:
//
//	<parent>/quern-<random>/<number>
//
// The parent is the tracker's group, or the group above it if systemd delegated that group,
// as with DelegateSubgroup. Workers cannot leave their groups, so all their processes can be
// found and killed. With the memory controller, the kernel limits each group, otherwise only
// the meter does. The tracker itself stays in its group.
//
// The file cgroup in the tracker's directory has the name of the group, for KillLeftover.
type cgroups struct {
	stateDir string // the tracker's directory; empty: no groups

	// Only one goroutine at a time uses these.
	openCalled bool
	dir        string // directory of the tracker's group; empty: none
	memory     bool   // the memory controller is available
	lastNumber int
}

const cgroupPrefix = "quern-"

// start starts a process in a new group or, if that fails, without a group.
func (g *cgroups) start(command func() *exec.Cmd) (cmd *exec.Cmd, group *cgroup, ended func(), err error) {
	if c := g.add(); c != nil {
		cmd = command()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(c.handle.Fd())
		ended, err = StartChild(cmd)
		c.handle.Close()
		if err == nil {
			return cmd, c, ended, nil
		}
		c.remove() // try again without the group
	}
	cmd = command()
	ended, err = StartChild(cmd)
	return cmd, nil, ended, err
}

// add makes a worker's group. The first call makes the tracker's group too. It returns nil
// if this is not permitted.
func (g *cgroups) add() *cgroup {
	if !g.openCalled && g.stateDir != "" {
		g.openCalled = true
		_ = g.open() // without it, only the meter limits workers
	}
	if g.dir == "" {
		return nil
	}
	g.lastNumber++
	c := &cgroup{dir: filepath.Join(g.dir, strconv.Itoa(g.lastNumber)), memory: g.memory}
	err := os.Mkdir(c.dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) && g.make() == nil { // another tracker took it for a dead tracker's group
		err = os.Mkdir(c.dir, 0o755)
	}
	if err != nil {
		return nil
	}
	if c.handle, err = os.Open(c.dir); err != nil {
		c.remove()
		return nil
	}
	return c
}

// open makes the tracker's group.
func (g *cgroups) open() error {
	parent, err := delegatedCgroup()
	if err != nil {
		return err
	}
	removeEmptyCgroups(parent)
	dir := filepath.Join(parent, cgroupPrefix+strconv.FormatUint(rand.Uint64(), 16))
	if err := os.WriteFile(filepath.Join(g.stateDir, GroupFile), []byte(dir+"\n"), 0o666); err != nil {
		return err
	}
	g.dir = dir
	if err := g.make(); err != nil {
		g.dir = ""
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil { // before Linux 5.14, or not a control group
		g.dir = ""
		return errors.Join(err, os.Remove(dir))
	}
	return nil
}

func (g *cgroups) make() error {
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	g.memory = setCgroup(g.dir, "cgroup.subtree_control", "+memory") == nil
	return nil
}

// removeEmptyCgroups removes the empty groups of all trackers, as most belong to killed
// trackers. A live tracker without workers makes its group again.
func removeEmptyCgroups(parent string) {
	groups, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*")) // the pattern is well-formed
	for _, group := range groups {
		events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
		if err != nil || !bytes.Contains(events, []byte("populated 0")) {
			continue
		}
		workers, _ := filepath.Glob(filepath.Join(group, "[0-9]*"))
		for _, dir := range append(workers, group) {
			_ = os.Remove(dir) // the kernel keeps groups in use
		}
	}
}

// close removes the tracker's group, after the end of its workers.
func (g *cgroups) close() error {
	if g.dir == "" {
		return nil
	}
	return errors.Join(removeCgroup(g.dir, time.Now().Add(groupWait)), os.Remove(filepath.Join(g.stateDir, GroupFile)))
}

// delegatedCgroup returns the parent of the tracker's group.
func delegatedCgroup() (string, error) {
	mount, err := cgroupMount()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		ownGroup := filepath.Join(mount, path)
		if above := filepath.Dir(ownGroup); ownGroup != mount && delegated(above) {
			return above, nil
		}
		return ownGroup, nil
	}
	return "", errors.New("this process is in no control group of version 2")
}

// delegated reports whether systemd delegated a group to its processes.
func delegated(group string) bool {
	var value [1]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(group, name, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// cgroupMount returns the mount point of control groups of version 2.
func cgroupMount() (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return filepath.Clean(fields[4]), nil
		}
	}
	return "", errors.New("control groups of version 2 are not mounted")
}

func setCgroup(group, file, value string) error {
	return os.WriteFile(filepath.Join(group, file), []byte(value), 0o644)
}

// cgroup is a worker's group; nil: none.
type cgroup struct {
	dir    string
	handle *os.File // used to start a process in it
	memory bool
}

// limit sets the group's memory limit, without swap: swap would only slow an attempt down
// before it fails.
func (c *cgroup) limit(limit *core.Limit) {
	if c == nil || !c.memory {
		return
	}
	value := "max"
	if limit.Memory > 0 {
		value = strconv.FormatInt(limit.Memory, 10)
		_ = setCgroup(c.dir, "memory.swap.max", "0")
		_ = setCgroup(c.dir, "memory.oom.group", "1")
	}
	_ = setCgroup(c.dir, "memory.max", value) // if it fails, the meter still limits
}

// memoryExhausted returns an error text if the kernel killed a process because the group's
// memory was exhausted.
func (c *cgroup) memoryExhausted(limit *core.Limit) string {
	if c == nil || limit.Memory == 0 {
		return ""
	}
	events, err := os.ReadFile(filepath.Join(c.dir, "memory.events"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(events)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && count != "0" {
			return fmt.Sprintf("its processes took all of the %s of memory they may have (%s) and needed more",
				mebibytes(limit.Memory), memoryProperty(limit.Kind))
		}
	}
	return ""
}

// members returns the processes in the group.
func (c *cgroup) members() (pids []int) {
	if c == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for _, field := range bytes.Fields(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (c *cgroup) kill() {
	if c != nil {
		_ = setCgroup(c.dir, "cgroup.kill", "1")
	}
}

// remove kills all processes of the group and removes it. If this fails, the tracker
// removes it when it ends or starts again.
func (c *cgroup) remove() {
	if c != nil {
		_ = removeCgroup(c.dir, time.Now().Add(groupWait))
	}
}

// removeCgroup kills the processes of a group and removes it with all groups below. Killed
// processes need some time to disappear; it waits for them until end.
func removeCgroup(dir string, end time.Time) error {
	_ = setCgroup(dir, "cgroup.kill", "1")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, e.Name()), end))
		}
	}
	for ; ; time.Sleep(time.Millisecond) {
		removeErr := os.Remove(dir)
		if removeErr == nil || errors.Is(removeErr, fs.ErrNotExist) || time.Now().After(end) {
			return errors.Join(err, removeErr)
		}
	}
}

// killCgroup removes the group that an earlier process recorded.
func killCgroup(stateDir string) error {
	name := filepath.Join(stateDir, GroupFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	group := strings.TrimSpace(string(text))
	// The prefix of its name protects groups that no tracker made.
	if _, err := os.Stat(filepath.Join(group, "cgroup.procs")); err == nil && strings.HasPrefix(filepath.Base(group), cgroupPrefix) {
		if err := removeCgroup(group, time.Now().Add(groupWait)); err != nil {
			return err
		}
	}
	return os.Remove(name)
}
