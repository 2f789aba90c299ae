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
	q.flags.BoolVar(&q.untilDrained, "wait", false, "wait until the task tracker is drained")
}

// drainPoll is the time between requests for the state of a drain.
const drainPoll = 500 * time.Millisecond

// drain takes a task tracker out of service.
func (q *query) drain(ctx context.Context) error {
	name := q.args[0]
	if err := q.cluster.Drain(ctx, name, false); err != nil {
		return err
	}
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if c.IsLeader && !slices.ContainsFunc(c.Trackers, func(t web.Tracker) bool { return c.Drain(t.ID) == nil }) {
		fmt.Fprintf(q.stderr, "%s was the last task tracker in service: jobs wait until another one registers\n", client.OneLine(name))
	}
	if q.untilDrained {
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

// awaitDrained waits until a tracker is drained, and prints each new reason for the wait.
func (q *query) awaitDrained(ctx context.Context, c *web.Cluster) (*web.Cluster, error) {
	name, printed := q.args[0], ""
	for {
		d := c.Drain(name)
		switch {
		case c.IsLeader && d == nil:
			return nil, fmt.Errorf("%s no longer drains: it was undrained meanwhile", name)
		case c.IsLeader && d.Drained:
			return c, nil
		case c.IsLeader && !d.Registered:
			return nil, fmt.Errorf("%s is not registered: it was lost before it was drained, or never registered", name)
		case c.IsLeader && d.Needs != printed:
			printed = d.Needs
			fmt.Fprintf(q.stderr, "%s %s\n", client.OneLine(name), client.OneLine(drainState(d)))
		}
		pause := time.NewTimer(drainPoll)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-q.signals.HangUp:
			pause.Stop()
			return nil, fmt.Errorf("got signal hangup: %s continues to drain", client.OneLine(name))
		}
		var err error
		if c, err = q.cluster.Cluster(ctx); err != nil {
			return nil, err
		}
	}
}

func (q *query) undrain(ctx context.Context) error {
	if err := q.cluster.Drain(ctx, q.args[0], true); err != nil {
		return err
	}
	return q.printChanged("undrained", q.args...)
}

// drainState describes the state of a drain.
func drainState(d *web.Drain) string {
	switch {
	case d.Drained && d.Registered:
		return "drained, gets no work"
	case d.Drained:
		return "drained, has ended"
	case !d.Registered:
		return "draining, not registered"
	case d.Needs == "":
		return "draining"
	}
	return "draining: " + d.Needs
}
