//go:build !linux

package process

import (
	"os/exec"
	"syscall"

	"github.com/quernmr/quern/tasktracker/core"
)

// Without /proc it cannot be told what a worker has left behind or whether a
// recorded process is still the one meant. So no worker is used twice, and
// survivors of a crashed tracker end by themselves when their pipe closes.

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap kills what is left of the group as soon as its leader is gone.
func (w *process) reap() error {
	err := w.cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = syscall.Kill(-w.pid(), syscall.SIGKILL)
	w.reaped = true
	return err
}

// others answers that there is one, for all that is known.
func others(int) []int { return []int{0} }

func appendRecord(string, int) error { return nil }
func killRecorded(string) error      { return nil }
func newRecord(string) error         { return nil }
func killCgroup(string) error        { return nil }

// cgroups are Linux's.
type cgroups struct{ stateDir string }

type cgroup struct{}

func (*cgroups) start(command func() *exec.Cmd) (*exec.Cmd, *cgroup, error) {
	cmd := command()
	return cmd, nil, cmd.Start()
}

func (*cgroups) close() error              { return nil }
func (*cgroup) kill()                      {}
func (*cgroup) remove()                    {}
func (*cgroup) members() []int             { return nil }
func (*cgroup) limit(*core.Limit)          {}
func (*cgroup) overrun(*core.Limit) string { return "" }
