package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/web"
)

// pastJob is a job's history in JSON.
type pastJob struct {
	web.Job
	Owner            string        `json:"owner"`
	Submitted        time.Time     `json:"submitted,omitzero"`
	Ended            time.Time     `json:"ended,omitzero"`
	Output           string        `json:"output,omitempty"`
	Attempts         []web.Attempt `json:"attempts,omitempty"`
	UnlistedAttempts int           `json:"unkeptAttempts,omitempty"` // number of attempts that are not in Attempts

	Plans      []pastPlan `json:"plans,omitempty"`
	PlansSince time.Time  `json:"plansSince,omitzero"` // earlier plans are not known
	PlansLack  string     `json:"plansLack,omitempty"` // why earlier plans are not known
}

// pastPlan is the part of a plan for one phase of the job. It is in force from At.
type pastPlan struct {
	At        time.Time    `json:"at"`
	Phase     string       `json:"phase"`
	Scheduler string       `json:"scheduler"`
	Metric    string       `json:"metric"`
	Delay     string       `json:"delay"`
	Slots     int          `json:"slots"`
	Place     int          `json:"place"` // rank in the plan, from 1; 0: the plan does not have the job
	Of        int          `json:"of"`
	End       time.Time    `json:"end,omitzero"`     // predicted
	Queues    []pastQueued `json:"queues,omitempty"` // tasks planned on trackers
	Share     float64      `json:"share,omitempty"`  // of the homes' fetches
	Turn      int          `json:"turn,omitempty"`   // rank of the share among all jobs, from 1
}

// pastQueued has the tasks of the job in the queue of a tracker.
type pastQueued struct {
	Tracker string `json:"tracker"`
	After   int    `json:"after"` // tasks ahead in the queue
	Tasks   int    `json:"tasks"`
}

func pastOf(r *history.Record) pastJob {
	p := pastJob{
		Job: web.JobOf(&r.Job), Owner: r.Owner, Submitted: unixMilli(r.Submitted), Ended: unixMilli(r.Ended), Output: r.Plan.Output,
		UnlistedAttempts: r.Omitted, PlansSince: unixMilli(r.PlansSince), PlansLack: r.PlansSinceReason,
	}
	for i := range r.Attempts {
		p.Attempts = append(p.Attempts, web.AttemptOf(&r.Attempts[i]))
	}
	for _, x := range r.Plans {
		var queues []pastQueued
		for _, q := range x.Queues {
			queues = append(queues, pastQueued(q))
		}
		p.Plans = append(p.Plans, pastPlan{
			At: unixMilli(x.At), Phase: x.Phase.String(), Scheduler: x.Scheduling.Scheduler, Metric: x.Scheduling.Metric, Delay: x.Scheduling.Delay,
			Slots: x.Target, Place: x.Place, Of: x.Places, End: unixMilli(x.End), Queues: queues, Share: x.Share, Turn: x.ShareRank,
		})
	}
	return p
}

func unixMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// history lists ended jobs, newest first, or prints the histories of a job or flow.
func (q *query) history(ctx context.Context) error {
	staging, err := q.stagingURL(ctx)
	if err != nil {
		return err
	}
	if q.limit < 0 {
		return usagef("-n must be a number of jobs or 0 for all, got %d", q.limit)
	}
	if _, err := files().Stat(staging); err != nil { // List returns nothing for a missing directory
		return fmt.Errorf("this machine cannot read staging directory %s: %w", staging, err)
	}
	if len(q.args) > 0 {
		return q.historyOf(ctx, staging)
	}
	entries, err := history.List(files(), staging)
	if err != nil {
		return err
	}
	if q.limit > 0 && len(entries) > q.limit {
		entries = entries[:q.limit]
	}
	past := make([]pastJob, 0, len(entries))
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r, err := history.Read(files(), e.Name)
		if err != nil { // removed meanwhile, or damaged: list the others
			fmt.Fprintf(q.stderr, "mrsubmit history: %v\n", errorText(err))
			continue
		}
		r.Attempts, r.Plans, r.Job.Counters, r.Job.Troubles = nil, nil, nil, nil
		past = append(past, pastOf(r))
	}
	if q.json {
		return q.printJSON(past)
	}
	rows := [][]string{{"JOB", "STATE", "ENDED", "ELAPSED", "OWNER", "NAME"}}
	for i := range past {
		p := &past[i]
		rows = append(rows, []string{p.ID, p.State, timeText(p.Ended), elapsedText(p.ElapsedMillis), p.Owner, p.Name})
	}
	return q.printTable(rows)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// historyOf prints the history of a job, or of the ended jobs of a flow.
func (q *query) historyOf(ctx context.Context, staging string) error {
	ids, flow, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	var records []*history.Record
	for _, id := range ids {
		r, err := history.Find(files(), staging, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%v has no history in %s: it has not ended, never existed, or its history has expired", id, staging)
		case err != nil:
			err = fmt.Errorf("history of %v: %w", id, err)
		}
		switch {
		case err == nil:
			records = append(records, r)
		case flow:
			q.reportSkipped(err)
		default:
			return err
		}
	}
	switch {
	case q.json && flow:
		past := make([]pastJob, 0, len(records))
		for _, r := range records {
			past = append(past, pastOf(r))
		}
		return q.printJSON(past)
	case q.json:
		return q.printJSON(pastOf(records[0]))
	}
	for _, r := range records {
		if err := q.printHistory(r); err != nil {
			return err
		}
	}
	return nil
}

func (q *query) printHistory(r *history.Record) error {
	if err := client.PrintStatus(q.stdout, &r.Job); err != nil {
		return err
	}
	p := pastOf(r)
	fmt.Fprintf(q.stdout, "owner %s, submitted %s, ended %s\n", client.OneLine(p.Owner), timeText(p.Submitted), timeText(p.Ended))
	if p.Output != "" {
		fmt.Fprintf(q.stdout, "output %s\n", client.OneLine(p.Output))
	}
	if p.PlansLack != "" {
		fmt.Fprintf(q.stdout, "plans before %s are not known: %s\n", timeText(p.PlansSince), client.OneLine(p.PlansLack))
	}
	if p.UnlistedAttempts > 0 {
		fmt.Fprintf(q.stdout, "%s not listed\n", countText(p.UnlistedAttempts, "attempt"))
	}
	if err := q.printTable(attemptRows(p.Attempts)); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Attempts, func(a web.Attempt) bool { return isApproximate(&a) }) {
		fmt.Fprintln(q.stdout, "~ approximate: an earlier leader or an older version launched the attempt")
	}
	return nil
}

func attemptRows(attempts []web.Attempt) [][]string {
	rows := [][]string{{"ATTEMPT", "STATE", "TRACKER", "LEVEL", "BEGAN", "TOOK", "ERROR"}}
	for i := range attempts {
		a := &attempts[i]
		state := a.State
		if a.Speculative {
			state += ", speculative"
		}
		rows = append(rows, []string{a.ID, state, a.Tracker, a.Level, beganText(a), elapsedText(a.TookMillis), firstLine(a.Error)})
	}
	return rows
}

// isApproximate reports whether the time at which an attempt began is known only approximately.
func isApproximate(a *web.Attempt) bool { return a.Launched.IsZero() && !a.Began.IsZero() }

// beganText formats the time at which an attempt began, with "~" in front if it is approximate.
func beganText(a *web.Attempt) string {
	if isApproximate(a) {
		return "~" + timeText(a.Began)
	}
	return timeText(a.Began)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
