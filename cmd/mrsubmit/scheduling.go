package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// schedulerHelp is the help of mrsubmit cluster scheduler.
func schedulerHelp() string {
	return fmt.Sprintf(`Without NAME and flags: shows the current scheduler. A change takes effect at once and
stays, whatever flags the job trackers are started with later. Parts that are not given
stay as they are. docs/scheduling.md helps to choose a scheduler.

Schedulers:   %s
Delay rules:  %s, or fixed with another time
Metrics:      %s
              and each of them with -weighted at its end`,
		strings.Join(menu.Names(), " "), strings.Join(locality.RuleNames(), " "), metricsHelp())
}

// metricsHelp lists the metrics that are not weighted, the sums and the maxima in a line each.
func metricsHelp() string {
	var b strings.Builder
	for i, m := range scheduler.Metrics() {
		switch {
		case m.Weighted:
			continue
		case i > 0 && m.Aggregate == scheduler.Max && m.Penalty == scheduler.Response:
			b.WriteString("\n             ")
		}
		fmt.Fprintf(&b, " %s", m)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// schedulingFlags defines the flags of mrsubmit cluster scheduler.
func schedulingFlags(q *query) {
	q.flags.StringVar(&q.newScheduling.Metric, "metric", "", "`metric` that flex and flowflex minimize: one of the list above")
	q.flags.StringVar(&q.newScheduling.Delay, "delay", "", "`rule` for how long maps wait for a local slot: one of the list above")
}

// scheduler changes how jobs share slots, if NAME or flags are given, and prints it.
func (q *query) scheduler(ctx context.Context) error {
	if len(q.args) > 0 {
		q.newScheduling.Scheduler = q.args[0]
	}
	if q.newScheduling != (wire.Scheduling{}) {
		if err := admission.CheckScheduling(q.newScheduling); err != nil {
			return usagef("%v", err)
		}
		if err := q.cluster.Schedule(ctx, q.newScheduling); err != nil {
			return err
		}
	}
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if !c.IsLeader {
		return fmt.Errorf("%s", leaderText(c))
	}
	if q.json {
		return q.printJSON(c.Scheduling)
	}
	fmt.Fprintf(q.stdout, "scheduler %s\nmetric %s\ndelay %s\n", c.Scheduling.Scheduler, c.Scheduling.Metric, c.Scheduling.Delay)
	if q.newScheduling == (wire.Scheduling{}) {
		fmt.Fprintf(q.stdout, "\nschedulers: %s\n", strings.Join(menu.Names(), " "))
	}
	return nil
}

// showScheduling prints the scheduler and the pools for mrsubmit cluster.
func (q *query) showScheduling(c *web.Cluster) error {
	if !c.IsLeader {
		return nil
	}
	s := c.Scheduling
	fmt.Fprintf(q.stdout, "scheduler %s, metric %s, delay %s\n", client.OneLine(s.Scheduler), client.OneLine(s.Metric), client.OneLine(s.Delay))
	if c.NoPlan != "" {
		fmt.Fprintf(q.stdout, "no new plan, the previous one stays: %s\n", client.OneLine(firstLine(c.NoPlan)))
	}
	if c.Pools.Status == "" && len(c.Pools.Pools) < 2 {
		return nil
	}
	fmt.Fprintln(q.stdout)
	if c.Pools.Status != "" {
		fmt.Fprintf(q.stdout, "pools of %s\n", client.OneLine(c.Pools.Status))
	}
	for _, note := range c.Pools.Notes {
		fmt.Fprintf(q.stdout, "  %s\n", client.OneLine(note))
	}
	rows := [][]string{{"POOL", "WEIGHT", "JOBS", "MAPS", "REDUCES"}}
	for _, p := range c.Pools.Pools {
		name := p.Name
		if p.Removed {
			name += " (removed)"
		}
		rows = append(rows, []string{
			name, strconv.FormatFloat(p.Weight, 'g', 4, 64), boundText(p.Jobs, 0, p.MaxJobs),
			boundText(p.Running[0], p.Min[0], p.Max[0]), boundText(p.Running[1], p.Min[1], p.Max[1]),
		})
	}
	return q.printTable(rows)
}

// boundText formats a number and its limits.
func boundText(n, lower, upper int) string {
	switch {
	case upper < 0 && lower == 0:
		return strconv.Itoa(n)
	case upper < 0:
		return fmt.Sprintf("%d of at least %d", n, lower)
	case lower == 0:
		return fmt.Sprintf("%d of at most %d", n, upper)
	}
	return fmt.Sprintf("%d of %d to %d", n, lower, upper)
}
