//go:build !unix

package client

import "os/exec"

// ownGroup does nothing where there are no process groups: cmd alone is killed.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
