//go:build !unix

package client

import "os/exec"

// ownGroup does nothing without process groups: only cmd is killed.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
