package core

import (
	"slices"
	"strings"
)

// How a Go program ends that has crashed.
const (
	crashStatus = "exit status 2"
	signalled   = "signal: "
)

// mayHaveCrashed says whether a worker ended as a Go program does that crashes.
func mayHaveCrashed(reason string) bool {
	return reason == crashStatus || strings.HasPrefix(reason, crashStatus+" ") || strings.HasPrefix(reason, signalled)
}

// crashError says first what Go says, and the limits in force where it ended for want of
// something, or was killed, which may be by the system for that.
func crashError(how, cause, limits string) string {
	wants := strings.Contains(how, signalled+"killed") || slices.ContainsFunc(wanting, func(w string) bool { return strings.Contains(cause, w) })
	if cause != "" {
		how = cause + " (" + how + ")"
	}
	if wants && limits != "" {
		how += "; " + limits
	}
	return how
}

// wanting is what Go says when memory or threads cannot be had.
var wanting = []string{
	"out of memory", "cannot allocate memory", "cannot reserve", "newosproc", "failed to create new OS thread", "pthread_create failed",
}
