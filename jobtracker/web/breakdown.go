package web

import (
	"context"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/breakdown"
	"github.com/quernmr/quern/wire"
)

type (
	// Breakdown is what all attempts of a job tell about it.
	Breakdown struct {
		Job              string           `json:"job"`
		Phases           []PhaseBreakdown `json:"phases"` // maps, then reduces
		Levels           []LevelCount     `json:"levels,omitempty"`
		FailedAttempts   int              `json:"failedAttempts"`
		Failure          *Attempt         `json:"failure,omitempty"`        // the attempt that failed first
		Curve            []CurvePoint     `json:"curve,omitempty"`          // bytes over time, under this leader
		UnlistedAttempts int              `json:"unkeptAttempts,omitempty"` // attempts that are not considered: there were too many
	}

	// PhaseBreakdown is what the attempts of a phase tell. Times are those of attempts that have succeeded.
	PhaseBreakdown struct {
		Phase        string       `json:"phase"`
		Running      int          `json:"running"`
		Tasks        int          `json:"tasks"` // that have succeeded
		LeastMillis  int64        `json:"leastMillis"`
		MedianMillis int64        `json:"medianMillis"`
		MostMillis   int64        `json:"mostMillis"`
		MeanMillis   float64      `json:"meanMillis"`
		Buckets      []TimeBucket `json:"buckets,omitempty"` // a histogram with bins of equal width, at most 24
		Slow         []Attempt    `json:"slow,omitempty"`    // the slowest of those that take twice the median or more, at most 20
	}

	// TimeBucket counts tasks with times in a range.
	TimeBucket struct {
		FromMillis int64 `json:"fromMillis"`
		ToMillis   int64 `json:"toMillis"` // exclusive
		Tasks      int   `json:"tasks"`
	}

	// LevelCount counts the maps that have succeeded at a distance to their input.
	LevelCount struct {
		Level string `json:"level"`
		Maps  int    `json:"maps"`
	}

	// CurvePoint has the bytes of a job until a time.
	CurvePoint struct {
		At       time.Time `json:"at"`
		Read     int64     `json:"read"`     // of input, by maps
		Shuffled int64     `json:"shuffled"` // map output that is at its homes
		Reduced  int64     `json:"reduced"`  // read by reduces
	}
)

func breakdownOf(id wire.JobID, x *jobtracker.JobBreakdown) *Breakdown {
	b := &Breakdown{Job: id.String(), FailedAttempts: x.Failed, UnlistedAttempts: x.Unlisted}
	for phase, kind := range []wire.Kind{wire.Map, wire.Reduce} {
		b.Phases = append(b.Phases, phaseBreakdown(kind, &x.Phases[phase]))
	}
	for level, maps := range x.Levels {
		if maps > 0 && level > 0 { // 0: not known
			b.Levels = append(b.Levels, LevelCount{wire.Level(level).String(), maps})
		}
	}
	if x.Failure != nil {
		failure := AttemptOf(x.Failure)
		b.Failure = &failure
	}
	for _, p := range x.Curve {
		b.Curve = append(b.Curve, CurvePoint{timeOf(p.At), p.Read, p.Shuffled, p.Reduced})
	}
	return b
}

func phaseBreakdown(kind wire.Kind, p *breakdown.Phase) PhaseBreakdown {
	x := PhaseBreakdown{Phase: kind.String(), Running: p.Running, Tasks: p.Tasks, LeastMillis: p.Least, MedianMillis: p.Median, MostMillis: p.Most, MeanMillis: p.Mean}
	for _, bucket := range p.Buckets {
		x.Buckets = append(x.Buckets, TimeBucket{bucket.From, bucket.To, bucket.Tasks})
	}
	for i := range p.Slow {
		x.Slow = append(x.Slow, AttemptOf(&p.Slow[i]))
	}
	return x
}

func (h *handler) breakdown(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	l, err := h.requireLeader()
	if err != nil {
		return nil, err
	}
	if err := h.Server.CheckView(ctx, h.caller(r), id); err != nil { // a kept breakdown may have an older rule
		return nil, err
	}
	x, err := h.breakdowns.Get(ctx, id, l.Epoch)
	if err != nil {
		return nil, err
	}
	if err := h.caller(r).CheckView(id, x.Owner, x.Access); err != nil {
		return nil, err
	}
	return breakdownOf(id, x), nil
}

// Breakdown returns what all attempts of a job tell about it.
func (c *Client) Breakdown(ctx context.Context, id wire.JobID) (*Breakdown, error) {
	b := new(Breakdown)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/breakdown"}, b)
	return b, err
}
