package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const explainHelp = `For each phase of a job: its place in the current plan, its slots now and in the plan, and
the time of a task with the source of that estimate. Then what keeps its tasks from free
slots, and its predicted end. At last its largest partitions and hot keys, if they are much
larger than others, and what its slots did. Without JOB: a line for each job that has not
ended.`

// explain explains the slots of one job, of each job of a flow, or of all jobs.
func (q *query) explain(ctx context.Context) error {
	if len(q.args) == 0 {
		return q.explainAll(ctx)
	}
	ids, flow, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	all := make([]*web.Explanation, len(ids))
	for i, id := range ids {
		if all[i], err = q.explanation(ctx, id); err != nil {
			return err
		}
	}
	switch {
	case q.json && flow:
		return q.printJSON(all)
	case q.json:
		return q.printJSON(all[0])
	}
	for i, x := range all {
		if err := printExplanation(q.stdout, x); err != nil {
			return err
		}
		if err := q.explainSkew(ctx, ids[i], x); err != nil {
			return err
		}
	}
	return nil
}

// explainSkew prints what makes some reduces of a job that has not ended larger than others, and what its slots did.
func (q *query) explainSkew(ctx context.Context, id wire.JobID, x *web.Explanation) error {
	if len(x.Phases) == 0 {
		return nil
	}
	job, err := q.job(ctx, id)
	if err != nil {
		return err
	}
	p := &printer{w: q.stdout}
	for _, line := range client.SkewTexts(&job) {
		p.printf("  skew       %s\n", line)
	}
	if text := client.SlotTimeText(&job); text != "" {
		p.printf("  slot time  %s\n", text)
	}
	return p.err
}

// explanation returns the cluster's explanation of a job. For a job that the cluster has forgotten,
// it makes one from the history.
func (q *query) explanation(ctx context.Context, id wire.JobID) (*web.Explanation, error) {
	x, err := q.cluster.Explain(ctx, id)
	if err != nil {
		h, err := q.fromHistory(ctx, id, err)
		if err != nil {
			return nil, err
		}
		x = &web.Explanation{
			Job: h.ID, Name: h.Name, State: h.State, Pool: h.Settings.Pool, Now: time.Now().UTC(), Submitted: h.Submitted, End: h.Ended,
		}
		if d := h.Settings.DeadlineMillis; d != 0 {
			x.Deadline = x.Submitted.Add(time.Duration(d) * time.Millisecond)
		}
	}
	return x, nil
}

func (q *query) explainAll(ctx context.Context) error {
	all, err := q.cluster.Explanations(ctx)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(all)
	}
	rows := [][]string{{"JOB", "STATE", "MAPS", "PLACE", "SLOTS", "REDUCES", "PLACE", "SLOTS", "SHUFFLE", "ENDS", "DEADLINE", "WAITS", "NAME"}}
	for i := range all {
		x := &all[i]
		row := []string{x.Job, x.State}
		for k := range 2 {
			if k >= len(x.Phases) {
				row = append(row, "-", "-", "-")
				continue
			}
			p := &x.Phases[k]
			row = append(row, fmt.Sprintf("%d/%d", p.Done, p.Tasks), placeText(p.Place, p.Of), fmt.Sprintf("%d of %d", p.Running, p.Target))
		}
		shuffle, waits := "-", "-"
		if x.Shuffle != nil {
			shuffle = fmt.Sprintf("%s left", client.Size(x.Shuffle.Remaining))
		}
		if len(x.Holds) > 0 {
			waits = x.Holds[0].Reason
		}
		rows = append(rows, append(row, shuffle, cmp.Or(client.PredictionText(jobOf(x)), "-"), cmp.Or(client.GoalText(jobOf(x)), "-"), waits, x.Name))
	}
	return q.printTable(rows)
}

func placeText(place, of int) string {
	if place == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", place, of)
}

// relativeTime formats a time relative to now: "in 12s", "4s ago".
func relativeTime(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := at.Sub(now)
	if d < 0 {
		return elapsedText(-d.Milliseconds()) + " ago"
	}
	return "in " + elapsedText(d.Milliseconds())
}

// printExplanation prints the explanation of one job.
func printExplanation(w io.Writer, x *web.Explanation) error {
	now := x.Now
	p := &printer{w: w}
	state := x.State
	if x.Suspended {
		state += ", suspended"
	}
	p.printf("%s %s: %s, pool %s\n", x.Job, client.OneLine(x.Name), state, client.OneLine(x.Pool))
	if x.Scheduler != "" {
		p.printf("  scheduler  %s, metric %s, delay %s\n", x.Scheduler, x.Metric, x.Delay)
	}
	for i := range x.Phases {
		p.phase(&x.Phases[i], now)
	}
	if s := x.Shuffle; s != nil {
		p.printf("  shuffle    %s of %s left, %s of it ready", client.Size(s.Remaining), client.Size(s.Total), client.Size(s.Ready))
		if s.Place > 0 {
			p.printf(", place %d of %d, share %.0f %%", s.Place, s.Of, 100*s.Share)
		}
		p.printf("\n")
	}
	for _, h := range x.Holds {
		p.printf("  held       %s", client.OneLine(h.Reason))
		if !h.Until.IsZero() {
			p.printf("; this ends %s at the latest", relativeTime(h.Until, now))
		}
		if !h.Expected.IsZero() {
			p.printf(", expected %s", relativeTime(h.Expected, now))
		}
		p.printf("\n")
	}
	p.ends(x, now)
	return p.err
}

// printer prints until the first error, which it keeps.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) phase(x *web.Phase, now time.Time) {
	p.printf("  %-10s %d of %d done, %d running, %d waiting", x.Phase+"s", x.Done, x.Tasks, x.Running, x.Waiting)
	switch {
	case x.Done == x.Tasks && x.Tasks > 0:
		p.printf("\n")
		return
	case x.Place > 0:
		p.printf("; place %d of %d in the plan, with %s", x.Place, x.Of, countText(x.Target, "slot"))
	default:
		p.printf("; not in the current plan")
	}
	if x.Min > 0 {
		p.printf(", %d guaranteed", x.Min)
	}
	if x.PoolMin > 0 {
		p.printf(", %d guaranteed to its pool", x.PoolMin)
	}
	p.printf("\n             a task takes %s (%s), %s of one slot left", secondsText(x.TaskSeconds), client.OneLine(x.Source), secondsText(x.RemainingSeconds))
	if !x.End.IsZero() {
		p.printf("; should end %s", relativeTime(x.End, now))
	}
	p.printf("\n")
	if o := x.Oldest; o != nil {
		p.printf("             oldest %s on %s, for %s", o.Attempt, client.OneLine(o.Tracker), secondsText(o.Seconds))
		if x.SpeculationOff {
			p.printf("; slow ones get no second attempt: mapreduce.%s.speculative is false", x.Phase)
		}
		p.printf("\n")
	}
	if x.Speculative > 0 {
		p.printf("             %s speculative: beside a slow one of the same task\n", runningAre(x.Speculative))
	}
	if x.Adopted > 0 {
		p.printf("             %s of an earlier leader: times count from this leader's start\n", runningAre(x.Adopted))
	}
	if x.WaitSeconds > 0 {
		p.printf("             a map waits at most %s for a local slot\n", secondsText(x.WaitSeconds))
	}
	if len(x.Speeds) > 1 {
		by := func(a, b web.Speed) int { return cmp.Compare(a.TaskSeconds, b.TaskSeconds) }
		fast, slow := slices.MinFunc(x.Speeds, by), slices.MaxFunc(x.Speeds, by)
		p.printf("             fastest on %s, %s; slowest on %s, %s\n",
			client.OneLine(fast.Tracker), secondsText(fast.TaskSeconds), client.OneLine(slow.Tracker), secondsText(slow.TaskSeconds))
	}
}

func runningAre(n int) string {
	if n == 1 {
		return "1 running attempt is"
	}
	return fmt.Sprintf("%d running attempts are", n)
}

func (p *printer) ends(x *web.Explanation, now time.Time) {
	job := jobOf(x)
	switch {
	case !x.End.IsZero() && len(x.Phases) == 0:
		p.printf("  ended      %s", relativeTime(x.End, now))
	case !job.Prediction.Known():
		p.printf("  ends       not known yet")
		if text := client.PredictionText(job); text != "" {
			p.printf(": %s", text)
		}
	default:
		p.printf("  ends       %s, %s after it was submitted", client.PredictionText(job), elapsedText(job.Prediction.Likely.Milliseconds()))
	}
	if !x.Deadline.IsZero() {
		p.printf("; deadline %s", relativeTime(x.Deadline, now))
		late := x.End.Sub(x.Deadline)
		if least := job.Prediction.LateBy(&job.Settings); x.End.IsZero() && least > 0 {
			p.printf(": it will probably miss it, by %s or more", elapsedText(least.Milliseconds()))
		} else if !x.End.IsZero() && late > 0 {
			p.printf(": it will miss it by about %s", elapsedText(late.Milliseconds()))
		} else if !x.End.IsZero() {
			p.printf(": %s to spare", elapsedText(-late.Milliseconds()))
		}
	}
	if step := job.Prediction.Step(&job.Settings); step.After > 0 {
		p.printf("; it will cost %g by its SLA, since it ends later than %s", step.Cost, elapsedText(step.After.Milliseconds()))
	}
	p.printf("\n")
}

// jobOf returns the part of a job's status that an explanation has, for the texts about its end.
func jobOf(x *web.Explanation) *wire.JobStatus {
	job := &wire.JobStatus{State: wire.Running, Elapsed: x.Now.Sub(x.Submitted), Prediction: x.Prediction.ToWire()}
	if !x.Deadline.IsZero() {
		job.Settings.Deadline = x.Deadline.Sub(x.Submitted)
	}
	if p := x.Prediction; p != nil && p.SLAMillis != 0 {
		job.Settings.SLA = []wire.SLAStep{{After: time.Duration(p.SLAMillis) * time.Millisecond, Cost: p.SLACost}}
	}
	return job
}

func secondsText(s float64) string {
	return elapsedText(int64(math.Round(min(s, 1e9) * 1000)))
}
