package pages

import "time"

// bar is a job on the time axis that all rows of a table share, in thousandths of its width. The
// axis goes from the first submission to the last predicted end or deadline.
type bar struct {
	From, Now, End   int // from submission to now is known, from now to the likely end predicted
	Earliest, Latest int // range of the end
	Deadline         int // -1: none
	Late             bool
}

// setAxis sets the bars of jobs with a predicted end. Complexity: linear.
func setAxis(rows []jobRow) {
	var oldest, last time.Duration // before now, after now
	for _, row := range rows {
		if row.Ends == 0 {
			continue
		}
		elapsed := millis(row.ElapsedMillis)
		oldest, last = max(oldest, elapsed), max(last, row.Ends-elapsed, millis(row.Prediction.LatestMillis)-elapsed)
		if d := millis(row.Settings.DeadlineMillis); d > 0 {
			last = max(last, d-elapsed)
		}
	}
	whole := oldest + last
	if whole <= 0 {
		return
	}
	at := func(d time.Duration) int { return int(1000 * float64(oldest+max(d, -oldest)) / float64(whole)) } // d from now
	for i := range rows {
		row := &rows[i]
		if row.Ends == 0 {
			continue
		}
		elapsed, p := millis(row.ElapsedMillis), row.Prediction
		row.Axis = &bar{
			From: at(-elapsed), Now: at(0), End: at(max(0, row.Ends-elapsed)), Deadline: -1,
			Earliest: at(max(0, millis(p.EarliestMillis)-elapsed)), Latest: at(max(0, millis(p.LatestMillis)-elapsed)), Late: p.LateMillis > 0,
		}
		if d := millis(row.Settings.DeadlineMillis); d > 0 {
			row.Axis.Deadline = at(d - elapsed)
		}
	}
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Known, Predicted and Range are the widths of parts of a bar.
func (b *bar) Known() int     { return b.Now - b.From }
func (b *bar) Predicted() int { return b.End - b.Now }
func (b *bar) Range() int     { return b.Latest - b.Earliest }
