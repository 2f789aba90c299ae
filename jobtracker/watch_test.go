package jobtracker

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestSameStatus: elapsed time and small differences of the predicted end are no changes;
// larger ones are.
func TestSameStatus(t *testing.T) {
	at := func(elapsed, ends time.Duration) wire.JobStatus {
		return wire.JobStatus{Elapsed: elapsed, Prediction: wire.Prediction{Earliest: ends, Likely: ends, Latest: ends}}
	}
	for _, c := range []struct {
		a, b wire.JobStatus
		same bool
	}{
		{at(1, 0), at(time.Minute, 0), true},
		{at(1, time.Minute), at(time.Second, time.Minute+minEndChange/2), true},
		{at(1, time.Minute), at(time.Second, time.Minute-minEndChange/2), true},
		{at(1, time.Minute), at(time.Second, time.Minute+minEndChange), false},
		{at(1, time.Minute), at(time.Second, time.Minute-minEndChange), false},
		{at(1, minEndChange/2), at(1, 0), false},
		{at(1, 0), at(1, minEndChange/2), false},
		{at(1, 1), wire.JobStatus{Name: "n", Elapsed: 1, Prediction: wire.Prediction{Earliest: 1, Likely: 1, Latest: 1}}, false},
		{at(1, 1), wire.JobStatus{Elapsed: 1, Prediction: wire.Prediction{Earliest: 1, Likely: 1, Latest: 1 + minEndChange}}, false},
		{at(1, 0), wire.JobStatus{Elapsed: 1, Prediction: wire.Prediction{Unknown: "first tasks still running"}}, false},
	} {
		if same := sameStatus(&c.a, &c.b); same != c.same {
			t.Errorf("%v and %v: the same is %v", c.a, c.b, same)
		}
	}
}
