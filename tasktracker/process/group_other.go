//go:build !linux

package process

import (
	"log/slog"
	"os"
	"os/exec"
	"syscall"
)

// Without /proc, leftover processes of a worker and of a dead tracker cannot be found. So
// no worker is used twice, and workers of a dead tracker end when their pipe closes.

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap kills the rest of the group after the end of its leader.
func (w *process) reap() error {
	err := w.cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = syscall.Kill(-w.pid(), syscall.SIGKILL)
	w.reaped = true
	return err
}

// otherMembers returns one process: there may be some.
func otherMembers(int) []int { return []int{0} }

// recordFile records nothing on this system.
type recordFile struct{ name string }

func (*recordFile) add(int) error { return nil }

func groupMembers() map[int][]int                                   { return nil }
func killRecorded(string, func() map[int][]int, *slog.Logger) error { return nil }
func newRecord(string) error                                        { return nil }

// StartChild starts a process.
func StartChild(cmd *exec.Cmd) (ended func(), err error) { return func() {}, cmd.Start() }

// PermitsExecution is not asked on this system.
func PermitsExecution(*os.File) bool { return true }

// EndStrangers does nothing on this system.
func (*Starter) EndStrangers() {}

func allEnded(pids []int) bool { return len(pids) == 0 }

func contain() error      { return nil }
func killStrangers()      {}
func children(int) []int  { return nil }
func listsChildren() bool { return false }
