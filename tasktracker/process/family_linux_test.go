package process

import "testing"

// BenchmarkKillStrangers measures the search for strangers where there are none, which each attempt
// costs.
func BenchmarkKillStrangers(b *testing.B) {
	for b.Loop() {
		killStrangers()
	}
}
