package core

import (
	"slices"
	"strings"
)

// Exit reasons of a crashed Go program.
const (
	crashStatus = "exit status 2"
	signalled   = "signal: "
)

// mayHaveCrashed reports whether a worker ended like a crashed Go program.
func mayHaveCrashed(reason string) bool {
	return reason == crashStatus || strings.HasPrefix(reason, crashStatus+" ") || strings.HasPrefix(reason, signalled)
}

// endedItself reports whether a worker's process has ended, as opposed to a failure of the tracker.
func endedItself(reason string) bool {
	return strings.HasPrefix(reason, "exit status ") || strings.HasPrefix(reason, signalled)
}

// crashError puts the cause of a crash before the exit reason. It appends the limits in
// force if memory or threads were exhausted, or if SIGKILL may have been sent for that.
func crashError(exit, cause, limits string) string {
	showLimits := strings.Contains(exit, signalled+"killed") || slices.ContainsFunc(resourceErrors, func(w string) bool { return strings.Contains(cause, w) })
	if cause != "" {
		exit = cause + " (" + exit + ")"
	}
	if showLimits && limits != "" {
		exit += "; " + limits
	}
	return exit
}

// resourceErrors are Go's messages when memory or threads are exhausted.
var resourceErrors = []string{
	"out of memory", "cannot allocate memory", "cannot reserve", "newosproc", "failed to create new OS thread", "pthread_create failed",
}
