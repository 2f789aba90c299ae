package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// curve has the bytes that the ended attempts of a phase had done at each time, in a box of 1000 by 100.
type curve struct {
	Phase  string
	Bytes  int64 // at the end
	Points string
}

// curves has the curves of a job on one axis of time.
type curves struct {
	Begin, End time.Time
	Phases     []curve
}

const curvePoints = 200

// bytesOverTime computes the curves from the ends of attempts; nil: nothing has ended.
func bytesOverTime(attempts []web.Attempt) *curves {
	type step struct {
		at    time.Time
		bytes int64
	}
	steps := make(map[string][]step)
	c := new(curves)
	for i := range attempts {
		a := &attempts[i]
		phase := phaseOf(a.ID)
		if phase == "" || a.State != "succeeded" || a.Began.IsZero() {
			continue
		}
		end := a.Began.Add(millis(a.TookMillis))
		if c.Begin.IsZero() || a.Began.Before(c.Begin) {
			c.Begin = a.Began
		}
		if end.After(c.End) {
			c.End = end
		}
		steps[phase] = append(steps[phase], step{end, a.Bytes.Done})
	}
	whole := c.End.Sub(c.Begin)
	if whole <= 0 {
		return nil
	}
	for _, phase := range []string{"map", "reduce"} {
		of := steps[phase]
		slices.SortFunc(of, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.bytes, b.bytes)) })
		one := curve{Phase: phase}
		for _, s := range of {
			one.Bytes += s.bytes
		}
		if one.Bytes == 0 {
			continue
		}
		var points strings.Builder
		points.WriteString("0,100")
		every := max(1, len(of)/curvePoints)
		sum := int64(0)
		for i, s := range of {
			if sum += s.bytes; i%every == 0 || i == len(of)-1 {
				fmt.Fprintf(&points, " %d,%d", int64(1000*float64(s.at.Sub(c.Begin))/float64(whole)), 100-int64(98*float64(sum)/float64(one.Bytes)))
			}
		}
		one.Points = points.String()
		c.Phases = append(c.Phases, one)
	}
	if len(c.Phases) == 0 {
		return nil
	}
	return c
}
