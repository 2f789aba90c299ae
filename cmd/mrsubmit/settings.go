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
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// setting is a job setting: a flag of mrsubmit run, and a name for mrsubmit set.
type setting struct {
	name, usage string
	read        func(c *wire.Change, text string, now time.Time) error
}

func settings() []setting {
	return []setting{
		{"pool", "`name` of the job's pool", func(c *wire.Change, text string, _ time.Time) error {
			name := cmp.Or(pool.Name(text), wire.DefaultPool)
			c.Pool = &name
			return nil
		}},
		{"priority", "`priority`: VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH", func(c *wire.Change, text string, _ time.Time) error {
			p, err := wire.ParsePriority(text)
			c.Priority = &p
			return err
		}},
		{"weight", "how much this job counts in the metric, as a `factor`; 1 if not given", readWeight},
		{"deadline", "when the job should end: a `duration` from now, such as 90m, or a time, such as 2026-11-21T18:00:00Z", readDeadline},
		{"sla", "`steps` TIME=COST: total cost of an end later than TIME after submission, such as 5m=1,10m=5", readSLA},
		{"batch", "`name` of a batch: its jobs are planned as if submitted at once", func(c *wire.Change, text string, _ time.Time) error {
			c.Batch = &text
			return nil
		}},
	}
}

func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

const suspendHelp = `A suspended job, and all jobs of its flow, get no slots until they are resumed.
Running attempts go on to their end. -now kills those that do not end soon; their tasks
rerun when the job is resumed. No failure counts.`

const setHelp = `The names are those of mrsubmit run's flags. Settings apply to a whole flow:

  pool=NAME  priority=HIGH  weight=2  deadline=90m  sla=5m=1,10m=5  batch=NAME

A deadline counts from now, or is a time such as 2026-11-21T18:00:00Z. An SLA counts from
the submission. deadline=none and sla=none remove them. With a deadline in the past the
job is late.`

// none removes a deadline or the SLA.
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
		d = cmp.Or(d, -1) // 0 would mean no deadline
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

// settingFlags defines a flag for each setting. It only checks the values, because deadlines need
// the cluster's clock; changeOf reads them later.
func settingFlags(set *flag.FlagSet) *[][2]string {
	given := new([][2]string)
	for _, s := range settings() {
		set.Func(s.name, s.usage, func(text string) error {
			*given = append(*given, [2]string{s.name, text})
			var c wire.Change
			return s.read(&c, text, time.Now())
		})
	}
	return given
}

// changeOf parses settings. If a name is given twice, the last value counts.
func changeOf(given [][2]string, now time.Time) (c wire.Change, err error) {
next:
	for _, pair := range given {
		for _, s := range settings() {
			if s.name == pair[0] {
				if err := s.read(&c, pair[1], now); err != nil {
					return c, err
				}
				continue next
			}
		}
		return c, fmt.Errorf("unknown setting %q: want pool, priority, weight, deadline, sla or batch%s", pair[0], spelling.DidYouMean("", pair[0], settingNames()))
	}
	return c, nil
}

// submitSettings returns the settings of a submission. Flags override the job's properties, which
// have Hadoop's names.
func submitSettings(properties map[string]string, given [][2]string, now time.Time) (t wire.Settings, err error) {
	if t, err = client.Settings(properties); err != nil {
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

// ignored lists the given settings that the current scheduler ignores.
func ignored(given [][2]string, s web.Scheduling) (names []string) {
	m, err := scheduler.ParseMetric(s.Metric)
	if err != nil {
		return nil // an older job tracker does not send it
	}
	uses := menu.UsesOf(s.Scheduler, m)
	used := map[string]bool{"priority": uses.Priority, "weight": uses.Weight, "deadline": uses.Deadline, "sla": uses.SLA}
	for _, pair := range given {
		if effect, known := used[pair[0]]; known && !effect && pair[1] != none && !slices.Contains(names, pair[0]) {
			names = append(names, pair[0])
		}
	}
	return names
}

// warnIgnored prints the given settings that the current scheduler ignores.
func (t *tool) warnIgnored(given [][2]string, s web.Scheduling) {
	if names := ignored(given, s); len(names) > 0 {
		fmt.Fprintf(t.stderr, "warning: scheduler %s with metric %s ignores %s\n", s.Scheduler, s.Metric, strings.Join(names, ", "))
	}
}

// warnEmbedded prints the properties of jobs that show more of a run without a cluster, and nothing on one.
func (t *tool) warnEmbedded(plan *wire.Plan) {
	for _, name := range []string{"quern.embedded.keep", "quern.embedded.output", "quern.task.inprocess"} {
		if slices.ContainsFunc(plan.Jobs, func(job wire.JobPlan) bool { return job.Properties[name] == "true" }) {
			fmt.Fprintf(t.stderr, "warning: property %s has no effect on a cluster\n", name)
		}
	}
}

// set changes settings of a job.
func (q *query) set(ctx context.Context) error {
	var given [][2]string
	for _, arg := range q.args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return usagef("%q: want NAME=VALUE, such as priority=HIGH", arg)
		}
		given = append(given, [2]string{name, value})
	}
	change, err := changeOf(given, time.Now())
	if err != nil {
		return usagef("%v", err)
	}
	ids, err := q.targetIDs(ctx, q.args[:1])
	if err != nil {
		return err
	}
	id := ids[0]
	if err := q.change(ctx, id, change); err != nil {
		return err
	}
	if c, err := q.cluster.Cluster(ctx); err == nil { // without it, there is only no warning
		q.warnIgnored(given, c.Scheduling)
	}
	job, err := q.job(ctx, id)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(web.JobOf(&job))
	}
	text := client.SettingsText(&job)
	if miss := client.MissText(&job); miss != "" {
		text += ", " + miss
	}
	_, err = fmt.Fprintf(q.stdout, "%v %s\n", id, text)
	return err
}

// change sends a change. For a job that has only a history, it fails with ErrJobEnded.
func (q *query) change(ctx context.Context, id wire.JobID, change wire.Change) error {
	err := q.cluster.Change(ctx, id, change)
	if errors.Is(err, admission.ErrUnknownJob) {
		if _, past := q.fromHistory(ctx, id, err); past == nil {
			err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
		}
	}
	return err
}

func suspendFlags(q *query) {
	q.flags.BoolVar(&q.now, "now", false, "kill the running attempts that do not end soon; their tasks rerun when the job is resumed")
}

// suspendCommand makes the commands that suspend jobs or resume them.
func suspendCommand(suspended bool) func(q *query, ctx context.Context) error {
	return func(q *query, ctx context.Context) error {
		ids, err := q.targetIDs(ctx, q.args)
		if err != nil {
			return err
		}
		var all error
		done := make([]string, 0, len(ids))
		for _, id := range ids {
			if err := q.change(ctx, id, wire.Change{Suspended: &suspended, TakeBack: q.now}); err != nil {
				all = errors.Join(all, err)
				continue
			}
			done = append(done, id.String())
		}
		if q.json {
			key := map[bool]string{true: "suspended", false: "resumed"}[suspended]
			all = errors.Join(all, q.printJSON(map[string][]string{key: done}))
		}
		return all
	}
}
