//go:build race

package sim

// raceEnabled is set when the slow race detector is on.
const raceEnabled = true
