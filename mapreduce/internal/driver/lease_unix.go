//go:build unix

package driver

import (
	"errors"
	"syscall"
)

// hasEnded reports whether no process has an id.
func hasEnded(process int) bool { return errors.Is(syscall.Kill(process, 0), syscall.ESRCH) }
