//go:build !unix

package client

import "os/exec"

// ownGroup does nothing, since there are no process groups: a kill reaches only cmd.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

// interrupt ends a program, since there are no signals.
func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended
