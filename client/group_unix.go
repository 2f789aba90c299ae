//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cmd start in its own process group. So Ctrl-C in a terminal reaches only this
// process, and a kill reaches all of the group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills processes that are still in the group of an ended program.
func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// interrupt tells a program to end.
func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) } // it may have ended
