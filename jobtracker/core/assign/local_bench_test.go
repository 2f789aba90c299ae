package assign

import (
	"fmt"
	"testing"
)

// benchCluster is a Cluster for benchmarks that use only the locality index.
type benchCluster struct{ Cluster }

func (benchCluster) PlanNow(int) {}

// BenchmarkLocal assigns 4,000 maps with input on three of a thousand nodes each. The cost per
// map must not grow with the number of pending maps.
func BenchmarkLocal(b *testing.B) {
	const nodes, maps = 1000, 4000
	a := New(benchCluster{}, 0)
	for i := range nodes {
		t := new(Tracker)
		a.AddTracker(t, nil, fmt.Sprintf("t%d", i), [2]int{1, 0})
		a.SetTakesWork(t, true, true)
	}
	j, splits := new(Job), make([]Split, maps)
	a.AddJob(j, 1, nil)
	for m := range splits {
		for k := range 3 {
			splits[m].Hosts = append(splits[m].Hosts, fmt.Sprintf("t%d", (m*7+k*331)%nodes))
		}
		a.AddPending(j, m)
	}
	a.SetSplits(j, splits)
	launched := 0
	for b.Loop() {
		t, m := a.find(j, &a.unchecked, func(t *Tracker) int { return a.pickLocal(j, t, true) })
		if t == nil {
			b.Fatal("no map is local to any node")
		}
		a.cursor = t.Index() + 1
		a.RemovePending(j, m)
		if launched++; launched == maps-nodes {
			launched = 0
			for m := range maps {
				a.AddPending(j, m)
			}
		}
	}
}
