package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// term is one of those that run has a flag for and set a key.
type term struct {
	name, usage string
	read        func(c *wire.Change, text string, now time.Time) error
}

func terms() []term {
	return []term{
		{"pool", "`name` of the pool in which it shares the cluster", func(c *wire.Change, text string, _ time.Time) error {
			name := cmp.Or(pool.Name(text), wire.DefaultPool)
			c.Pool = &name
			return nil
		}},
		{"priority", "`priority`: VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH", func(c *wire.Change, text string, _ time.Time) error {
			p, err := wire.ParsePriority(text)
			c.Priority = &p
			return err
		}},
		{"weight", "`factor` of what its lateness, or whatever the metric is about, costs; 1 if not given", readWeight},
		{"deadline", "by when it should end: a `duration` from now, such as 90m, or a time, such as 2026-11-21T18:00:00Z", readDeadline},
		{"sla", "`steps` of what ending after a time since its submission costs in total, such as 5m=1,10m=5", readSLA},
		{"batch", "`name` of jobs that are planned together, as if they had come at once", func(c *wire.Change, text string, _ time.Time) error {
			c.Batch = &text
			return nil
		}},
	}
}

const suspendHelp = `A suspended job, and all jobs of its flow, get no slots until they are resumed.
Tasks that run go on to their end.`

const setHelp = `Terms are those of mrsubmit run's flags, and are of all jobs of a flow together:

  pool=NAME  priority=HIGH  weight=2  deadline=90m  sla=5m=1,10m=5  batch=NAME

A deadline is from now, or a time such as 2026-11-21T18:00:00Z; an SLA is from the
submission. deadline=none and sla=none take them away. A deadline in the past is
taken: the job is late.`

// none takes a deadline or the SLA away.
const none = "none"

func readWeight(c *wire.Change, text string, _ time.Time) error {
	w, err := strconv.ParseFloat(text, 64)
	if err != nil || !(w > 0) || math.IsInf(w, 0) {
		return fmt.Errorf("weight %q: want a number above 0", text)
	}
	c.Weight = &w
	return nil
}

func readDeadline(c *wire.Change, text string, now time.Time) error {
	var d time.Duration
	if text != none {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			at, bad := time.Parse(time.RFC3339, text)
			if bad != nil {
				return fmt.Errorf("deadline %q: want a duration such as 90m or a time such as 2026-11-21T18:00:00Z", text)
			}
			d = at.Sub(now)
		}
		d = cmp.Or(d, -1) // now: it is missed
	}
	c.Deadline = &d
	return nil
}

func readSLA(c *wire.Change, text string, _ time.Time) error {
	steps := []wire.SLAStep{}
	c.SLA = &steps
	if text == none || text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		after, cost, ok := strings.Cut(strings.TrimSpace(part), "=")
		var step wire.SLAStep
		var err, bad error
		step.After, err = time.ParseDuration(after)
		step.Cost, bad = strconv.ParseFloat(cost, 64)
		if !ok || err != nil || bad != nil {
			return fmt.Errorf("sla %q: want TIME=COST, … such as 5m=1,10m=5", text)
		}
		steps = append(steps, step)
	}
	return nil
}

// termFlags defines a flag for each term, which are read once now is known.
func termFlags(set *flag.FlagSet) *[][2]string {
	given := new([][2]string)
	for _, term := range terms() {
		set.Func(term.name, term.usage, func(text string) error {
			*given = append(*given, [2]string{term.name, text})
			var c wire.Change
			return term.read(&c, text, time.Now())
		})
	}
	return given
}

// changeOf reads terms by their names; the later one wins.
func changeOf(given [][2]string, now time.Time) (c wire.Change, err error) {
next:
	for _, pair := range given {
		for _, term := range terms() {
			if term.name == pair[0] {
				if err := term.read(&c, pair[1], now); err != nil {
					return c, err
				}
				continue next
			}
		}
		return c, fmt.Errorf("unknown term %q: want pool, priority, weight, deadline, sla or batch", pair[0])
	}
	return c, nil
}

// submitTerms are those of a submission: what its job's properties say, as Hadoop's
// do, and over it the flags.
func submitTerms(properties map[string]string, given [][2]string, now time.Time) (t wire.Terms, err error) {
	if t, err = client.Terms(properties); err != nil {
		return t, err
	}
	c, err := changeOf(given, now)
	if err != nil {
		return t, err
	}
	if c.Pool != nil {
		t.Pool = *c.Pool
	}
	if c.Priority != nil {
		t.Priority = *c.Priority
	}
	if c.Weight != nil {
		t.Weight = *c.Weight
	}
	if c.Deadline != nil {
		t.Deadline = *c.Deadline
	}
	if c.SLA != nil {
		t.SLA = *c.SLA
	}
	if c.Batch != nil {
		t.Batch = *c.Batch
	}
	return t, nil
}

// unheeded lists the terms among those given that have no effect as a cluster shares
// its slots now.
func unheeded(given [][2]string, s web.Scheduling) (names []string) {
	m, err := scheduler.ParseMetric(s.Metric)
	if err != nil {
		return nil // of a job tracker that does not tell
	}
	heeds := menu.HeedsOf(s.Scheduler, m)
	heeded := map[string]bool{"priority": heeds.Priority, "weight": heeds.Weight, "deadline": heeds.Deadline, "sla": heeds.SLA}
	for _, pair := range given {
		if effect, known := heeded[pair[0]]; known && !effect && pair[1] != none && !slices.Contains(names, pair[0]) {
			names = append(names, pair[0])
		}
	}
	return names
}

// warnUnheeded says which of the terms given have no effect now.
func (t *tool) warnUnheeded(given [][2]string, s web.Scheduling) {
	if names := unheeded(given, s); len(names) > 0 {
		fmt.Fprintf(t.stderr, "warning: no effect on slots under %s, %s: %s\n", s.Scheduler, s.Metric, strings.Join(names, ", "))
	}
}

// set changes the terms of a job.
func (q *query) set(ctx context.Context) error {
	var given [][2]string
	for _, arg := range q.args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return wrong("%q: want a term and its value, such as priority=HIGH", arg)
		}
		given = append(given, [2]string{name, value})
	}
	change, err := changeOf(given, time.Now())
	if err != nil {
		return wrong("%v", err)
	}
	ids, err := q.wholes(ctx, q.args[:1])
	if err != nil {
		return err
	}
	id := ids[0]
	if err := q.change(ctx, id, change); err != nil {
		return err
	}
	if c, err := q.cluster.Cluster(ctx); err == nil { // it is but a warning
		q.warnUnheeded(given, c.Scheduling)
	}
	job, err := q.job(ctx, id)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(web.JobOf(&job))
	}
	_, err = fmt.Fprintf(q.stdout, "%v %s\n", id, client.TermsText(&job))
	return err
}

// change asks for one; a job that is known from its history has ended.
func (q *query) change(ctx context.Context, id wire.JobID, change wire.Change) error {
	err := q.cluster.Change(ctx, id, change)
	if errors.Is(err, admission.ErrUnknownJob) {
		if _, past := q.past(ctx, id, err); past == nil {
			err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
		}
	}
	return err
}

// hold makes the commands that suspend jobs and resume them.
func hold(suspended bool) func(q *query, ctx context.Context) error {
	return func(q *query, ctx context.Context) error {
		ids, err := q.wholes(ctx, q.args)
		if err != nil {
			return err
		}
		var all error
		done := make([]string, 0, len(ids))
		for _, id := range ids {
			if err := q.change(ctx, id, wire.Change{Suspended: &suspended}); err != nil {
				all = errors.Join(all, err)
				continue
			}
			done = append(done, id.String())
		}
		if q.json {
			what := map[bool]string{true: "suspended", false: "resumed"}[suspended]
			all = errors.Join(all, q.printJSON(map[string][]string{what: done}))
		}
		return all
	}
}
