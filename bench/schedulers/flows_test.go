package schedulers

import (
	"reflect"
	"testing"
)

// TestDrawFlows: the drawn flows have the described properties, and are the same every time.
func TestDrawFlows(t *testing.T) {
	for seed := range uint64(50) {
		drawn := drawFlows(seed, flexWork)
		if again := drawFlows(seed, flexWork); !reflect.DeepEqual(drawn, again) {
			t.Fatalf("seed %d: %+v, then %+v", seed, drawn, again)
		}
		if len(drawn.jobs) != flowCount {
			t.Fatalf("seed %d: %d flows", seed, len(drawn.jobs))
		}
		work := 0.0
		for _, j := range drawn.jobs {
			work += j.work
			if n := len(j.flow); n < minFlowJobs || n > maxFlowJobs {
				t.Errorf("seed %d, %s: %d jobs", seed, j.name, n)
			}
			followed := make([]bool, len(j.flow))
			for k, n := range j.flow {
				for _, before := range n.After {
					followed[before] = true
				}
				if n.Mean.Seconds() < shortTask {
					t.Errorf("seed %d, %s: tasks of job %d take %v", seed, j.name, k, n.Mean)
				}
			}
			for k, f := range followed[:len(followed)-1] {
				if !f {
					t.Errorf("seed %d, %s: nothing is after job %d", seed, j.name, k)
				}
			}
			if j.deadline < j.alone {
				t.Errorf("seed %d, %s: due at %v, but it takes %v alone", seed, j.name, j.deadline, j.alone)
			}
		}
		if work < 0.9*flexWork || work > 1.1*flexWork {
			t.Errorf("seed %d: %v slot-seconds", seed, work)
		}
	}
}
