//go:build !linux

package attemptlog

const namedPipes = false // logs have no limit
