package pages

import (
	"fmt"
	"time"
)

// bar is a job on the axis that all rows of a table share: known from its submission to now, predicted from
// now to its likely end. Places are from 0 to 1.
type bar struct {
	From, Now, End   float64
	Earliest, Latest float64 // range of the end
	Deadline         float64 // -1: none
	Late             bool    // it misses the deadline
	Text             string  // says the same in words
}

// setBars sets the bars of jobs with a predicted end, and returns their axis; nil: no job has one. The axis
// goes to the last predicted end or deadline. Of the past it has at most three times as much. Complexity: linear.
func setBars(rows []jobRow, now time.Time) *axis {
	begin, end := now, now
	for i := range rows {
		if row := &rows[i]; row.Ends > 0 {
			begin = earlier(begin, row.Submitted)
			end = later(end, later(row.Submitted.Add(row.Ends), row.Submitted.Add(millis(row.Prediction.LatestMillis))))
			if d := millis(row.Settings.DeadlineMillis); d > 0 {
				end = later(end, row.Submitted.Add(d))
			}
		}
	}
	if !end.After(begin) {
		return nil
	}
	begin = later(begin, now.Add(-3*max(end.Sub(now), 10*time.Second)))
	a := axisWithin(begin, end, narrowIntervals)
	for i := range rows {
		if rows[i].Ends > 0 {
			rows[i].Bar = barOf(&rows[i], &a, now)
		}
	}
	return &a
}

func barOf(row *jobRow, a *axis, now time.Time) *bar {
	p, submitted := row.Prediction, row.Submitted
	at := func(ms int64) float64 { return a.at(later(now, submitted.Add(millis(ms)))) } // an end is not before now
	b := &bar{
		From: a.at(submitted), Now: a.at(now), End: at(p.LikelyMillis), Earliest: at(p.EarliestMillis), Latest: at(p.LatestMillis),
		Deadline: -1, Late: p.LateMillis > 0 || row.Settings.Late,
	}
	b.Text = fmt.Sprintf("submitted %s, likely end %s, between %s and %s", clock(submitted), clock(submitted.Add(row.Ends)),
		clock(submitted.Add(millis(p.EarliestMillis))), clock(submitted.Add(millis(p.LatestMillis))))
	if d := row.Settings.DeadlineMillis; d > 0 {
		due := submitted.Add(millis(d))
		b.Deadline = a.at(due)
		b.Text += ", deadline " + clock(due)
	}
	if b.Late {
		b.Text += ": late"
	}
	return b
}

// Known, Predicted and Range are the widths of parts of a bar.
func (b *bar) Known() float64     { return b.Now - b.From }
func (b *bar) Predicted() float64 { return b.End - b.Now }
func (b *bar) Range() float64     { return b.Latest - b.Earliest }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
