//go:build race

package sim

// raceEnabled reports whether this test runs under the race detector, which is slow.
const raceEnabled = true
