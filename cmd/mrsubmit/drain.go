package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

func drainFlags(q *query) {
	q.flags.BoolVar(&q.stays, "wait", false, "of cluster drain: wait until the task tracker is drained")
}

// lookAgain is how often a tracker that drains is looked at.
const lookAgain = 500 * time.Millisecond

// drain lets a task tracker leave.
func (q *query) drain(ctx context.Context) error {
	name := q.args[0]
	if err := q.cluster.Drain(ctx, name, false); err != nil {
		return err
	}
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if c.Leads && !slices.ContainsFunc(c.Trackers, func(t web.Tracker) bool { return c.Drain(t.ID) == nil }) {
		fmt.Fprintf(q.stderr, "%s was the last task tracker that is given work: jobs wait until there is another\n", client.OneLine(name))
	}
	if q.stays {
		c, err = q.awaitDrained(ctx, c)
	}
	if err != nil {
		return err
	}
	d := c.Drain(name)
	switch {
	case q.json:
		return q.printJSON(d)
	case d != nil:
		fmt.Fprintf(q.stdout, "%s %s\n", client.OneLine(name), client.OneLine(drainState(d)))
	}
	return nil
}

// awaitDrained waits until nothing of a tracker is needed, telling what is.
func (q *query) awaitDrained(ctx context.Context, c *web.Cluster) (*web.Cluster, error) {
	name, told := q.args[0], ""
	for {
		d := c.Drain(name)
		switch {
		case c.Leads && d == nil:
			return nil, fmt.Errorf("%s drains no more: somebody has undone it", name)
		case c.Leads && d.Drained:
			return c, nil
		case c.Leads && !d.Here:
			return nil, fmt.Errorf("%s is not there: it has been lost before it was drained, or was never there", name)
		case c.Leads && d.Needs != told:
			told = d.Needs
			fmt.Fprintf(q.stderr, "%s %s\n", client.OneLine(name), client.OneLine(drainState(d)))
		}
		pause := time.NewTimer(lookAgain)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-q.signals.HangUp:
			pause.Stop()
			return nil, fmt.Errorf("got signal hangup: %s drains on", client.OneLine(name))
		}
		var err error
		if c, err = q.cluster.Cluster(ctx); err != nil {
			return nil, err
		}
	}
}

func (q *query) undrain(ctx context.Context) error {
	return q.cluster.Drain(ctx, q.args[0], true)
}

// drainState says in words how far a tracker is that drains.
func drainState(d *web.Drain) string {
	switch {
	case d.Drained && d.Here:
		return "drained, is given no work"
	case d.Drained:
		return "drained, has left"
	case !d.Here:
		return "draining, is not there"
	case d.Needs == "":
		return "draining"
	}
	return "draining: " + d.Needs
}
