//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// ownGroup starts cmd in a process group of its own, which is killed as a whole.
// A terminal's Ctrl-C therefore reaches this process alone.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills what a program that has ended has left in its group.
func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
