//go:build !unix

package client

import "os/exec"

// ownGroup does nothing, since there are no process groups: a kill reaches only cmd.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
