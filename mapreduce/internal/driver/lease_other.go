//go:build !unix

package driver

// hasEnded reports that it is not known whether a process has ended.
func hasEnded(int) bool { return false }
