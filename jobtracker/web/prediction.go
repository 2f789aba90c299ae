package web

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// Prediction is the predicted end of a job that has not ended. Nine of ten jobs end between the earliest
// and the latest time. Times count from the submission. While no end is predicted, there may be an earliest one:
// what tasks of other jobs suggest.
type Prediction struct {
	EarliestMillis int64  `json:"earliestMillis,omitempty"`
	LikelyMillis   int64  `json:"likelyMillis,omitempty"`
	LatestMillis   int64  `json:"latestMillis,omitempty"`
	Unknown        string `json:"unknown,omitempty"` // why no end is predicted, such as "first tasks still running"

	LateMillis int64   `json:"lateMillis,omitempty"` // the time by which the likely end, or the earliest before it is known, misses the deadline
	SLAMillis  int64   `json:"slaMillis,omitempty"`  // the last step of the SLA that this end passes
	SLACost    float64 `json:"slaCost,omitempty"`    // the cost of that step
}

// predictionOf converts a job's prediction to JSON; nil if it has neither an end nor a reason.
func predictionOf(p *wire.Prediction, t *wire.Settings) *Prediction {
	if *p == (wire.Prediction{}) {
		return nil
	}
	step := p.Step(t)
	return &Prediction{
		EarliestMillis: p.Earliest.Milliseconds(), LikelyMillis: p.Likely.Milliseconds(), LatestMillis: p.Latest.Milliseconds(), Unknown: p.Unknown,
		LateMillis: p.LateBy(t).Milliseconds(), SLAMillis: step.After.Milliseconds(), SLACost: step.Cost,
	}
}

// ToWire is the inverse of the conversion to JSON, to the millisecond. The settings of the job determine
// what it misses.
func (p *Prediction) ToWire() wire.Prediction {
	if p == nil {
		return wire.Prediction{}
	}
	millis := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return wire.Prediction{Earliest: millis(p.EarliestMillis), Likely: millis(p.LikelyMillis), Latest: millis(p.LatestMillis), Unknown: p.Unknown}
}
