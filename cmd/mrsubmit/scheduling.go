package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// schedulingFlags defines the flags of mrsubmit cluster scheduler.
func schedulingFlags(q *query) {
	q.flags.StringVar(&q.wanted.Metric, "metric", "", "`metric` that flex and flowflex minimize, such as sum-response")
	q.flags.StringVar(&q.wanted.Delay, "delay", "", "`rule` for how long maps wait for a local slot, such as dynamic")
}

// scheduler prints how jobs share slots, after changing it if asked to.
func (q *query) scheduler(ctx context.Context) error {
	if len(q.args) > 0 {
		q.wanted.Scheduler = q.args[0]
	}
	if q.wanted != (wire.Scheduling{}) {
		if err := admission.CheckScheduling(q.wanted); err != nil {
			return wrong("%v", err)
		}
		if err := q.cluster.Schedule(ctx, q.wanted); err != nil {
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
	if q.wanted == (wire.Scheduling{}) {
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
	return q.table(rows)
}

// boundText prints a number and its bounds.
func boundText(n, least, most int) string {
	switch {
	case most < 0 && least == 0:
		return strconv.Itoa(n)
	case most < 0:
		return fmt.Sprintf("%d of at least %d", n, least)
	case least == 0:
		return fmt.Sprintf("%d of at most %d", n, most)
	}
	return fmt.Sprintf("%d of %d to %d", n, least, most)
}
