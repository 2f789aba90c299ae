//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// ownGroup starts cmd in its own process group, which is killed as a whole. So a terminal's
// Ctrl-C reaches only this process.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills the processes that an ended program has left in its group.
func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
