package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

func excludeFlags(q *query) {
	q.flags.StringVar(&q.reason, "reason", "", "`text` that mrsubmit cluster shows")
	q.flags.DurationVar(&q.excludeFor, "for", 0, "readmit it after this `time`, as 90m; 0: never")
}

// exclude keeps a task tracker from new work.
func (q *query) exclude(ctx context.Context) error {
	name := q.args[0]
	if q.excludeFor < 0 {
		return usagef("-for must be positive, got %v", q.excludeFor)
	}
	r := web.ExclusionRequest{Tracker: name, By: q.user(), Reason: q.reason, Millis: q.excludeFor.Milliseconds()}
	if q.excludeFor > 0 && r.Millis == 0 {
		return usagef("-for must be at least 1ms, got %v", q.excludeFor)
	}
	if err := q.cluster.Exclude(ctx, r); err != nil {
		return err
	}
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if c.IsLeader && !slices.ContainsFunc(c.Trackers, func(t web.Tracker) bool { return t.Connected && takesWork(c, &t) }) {
		fmt.Fprintf(q.stderr, "%s was the last task tracker in service: jobs wait until one is readmitted or another one registers\n", client.OneLine(name))
	}
	x := c.OperatorExclusion(name)
	switch {
	case q.json:
		return q.printJSON(x)
	case x != nil:
		fmt.Fprintf(q.stdout, "%s %s\n", client.OneLine(name), client.OneLine(exclusionState(x, c.Wall)))
	}
	return nil
}

// takesWork reports whether a task tracker neither drains nor is excluded.
func takesWork(c *web.Cluster, t *web.Tracker) bool {
	return c.Drain(t.ID) == nil && c.OperatorExclusion(t.ID) == nil && t.Excluded == ""
}

// readmit ends the exclusions of a task tracker. That it is not excluded is no error, since single jobs
// that do not use it use it again.
func (q *query) readmit(ctx context.Context) error {
	name := q.args[0]
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if err := q.cluster.Exclude(ctx, web.ExclusionRequest{Tracker: name, By: q.user(), Undo: true}); err != nil {
		return err
	}
	result, readmitted := "readmitted", q.args
	if c.IsLeader && c.OperatorExclusion(name) == nil && c.LeaderExclusion(name) == nil {
		result, readmitted = "was not excluded; jobs that did not use it may use it again", nil
	}
	if q.json {
		return q.printChanged("readmitted", readmitted...)
	}
	_, err = fmt.Fprintf(q.stdout, "%s %s\n", client.OneLine(name), result)
	return err
}

// exclusionState describes an exclusion.
func exclusionState(x *web.Exclusion, now time.Time) string {
	text := "excluded"
	if x.Operator {
		if x.By != "" {
			text += " by " + x.By
		}
		text += " at " + timeText(x.Since)
	}
	switch {
	case !x.Until.IsZero():
		text += fmt.Sprintf(" until %s (%s)", timeText(x.Until), relativeTime(x.Until, now))
	case x.Operator:
		text += " until readmitted"
	}
	if x.Reason != "" {
		text += ": " + x.Reason
	}
	return text
}
