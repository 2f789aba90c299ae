// Package membound checks in tests that a decoder allocates memory only in proportion to its input.
// A few bytes from another process must not become many megabytes, see [Bound].
package membound

import (
	"runtime"
	"testing"
)

// Bound is the memory that a decoder may allocate, with garbage: Free, plus PerByte for each byte of
// its input.
type Bound struct{ Free, PerByte int }

// attempts is how often Check measures: other goroutines allocate memory, too.
const attempts = 3

// Check calls decode, and fails the test if it allocates too much for an input of n bytes. It calls
// decode again if that seems so.
func (b Bound) Check(t testing.TB, n int, decode func()) {
	t.Helper()
	limit, least := uint64(b.Free+b.PerByte*n), uint64(0)
	for i := range attempts {
		took := Allocated(decode)
		if took <= limit {
			return
		}
		if i == 0 || took < least {
			least = took
		}
	}
	t.Fatalf("decoding %d bytes allocated %d bytes of memory, at most %d are allowed (%d, and %d for each byte)", n, least, limit, b.Free, b.PerByte)
}

// Allocated returns how many bytes of memory f allocates, with garbage.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
