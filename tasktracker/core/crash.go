package core

import (
	"slices"
	"strings"
)

// How a crashed Go program ends.
const (
	crashStatus = "exit status 2"
	signalled   = "signal: "
)

// mayHaveCrashed reports whether a worker ended like a crashed Go program.
func mayHaveCrashed(reason string) bool {
	return reason == crashStatus || strings.HasPrefix(reason, crashStatus+" ") || strings.HasPrefix(reason, signalled)
}

// crashError puts the crash's cause first. If memory or threads were exhausted, or if a
// signal killed the worker, perhaps for that reason, it appends the limits in force.
func crashError(how, cause, limits string) string {
	showLimits := strings.Contains(how, signalled+"killed") || slices.ContainsFunc(resourceErrors, func(w string) bool { return strings.Contains(cause, w) })
	if cause != "" {
		how = cause + " (" + how + ")"
	}
	if showLimits && limits != "" {
		how += "; " + limits
	}
	return how
}

// resourceErrors are Go's messages when memory or threads are exhausted.
var resourceErrors = []string{
	"out of memory", "cannot allocate memory", "cannot reserve", "newosproc", "failed to create new OS thread", "pthread_create failed",
}
