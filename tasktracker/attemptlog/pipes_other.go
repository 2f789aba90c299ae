//go:build !linux

package attemptlog

const namedPipes = false // logs are as long as attempts make them
