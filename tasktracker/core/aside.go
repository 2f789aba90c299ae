package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// If all fetches from a host fail, the maps in its queues are reported lost and set aside: homes still
// want them, but they are in no queue. They are tried again after Config.RetryMax, or when the leader
// names their outputs again. This is known of each map, not of each home that wants it.

// unreachable is a map output that was reported lost, as no fetch from its host succeeds. It is forgotten
// when no home wants or fetches it any more, a fetch of it succeeds, or the leader names another output.
type unreachable struct {
	attempt int
	reason  string
}

// aside is maps of a job that are set aside until a time, since their host could not be reached.
type aside struct {
	job   *job
	addr  string
	maps  []int32
	until time.Duration
}

// setAside reports all maps in a queue lost, each once, and sets them aside.
func (c *Core) setAside(q *queue, reason string) {
	maps, j := q.takeAll(), q.job
	if len(maps) == 0 {
		return
	}
	if j.unreachable == nil {
		j.unreachable = make(map[int]unreachable)
	}
	for _, m := range maps {
		j.unreachable[int(m)] = unreachable{j.outputs[int(m)].Attempt, reason}
		c.sendUnreachable(j, int(m))
	}
	c.wait(aside{j, q.host.addr, maps, c.now + c.cfg.RetryMax})
}

// wait adds to Core.aside.
func (c *Core) wait(x aside) {
	i, _ := slices.BinarySearchFunc(c.aside, x.until, func(x aside, until time.Duration) int {
		if x.until <= until {
			return -1
		}
		return 1
	})
	c.aside = slices.Insert(c.aside, i, x)
}

// sendUnreachable reports a map of job.unreachable lost.
func (c *Core) sendUnreachable(j *job, m int) {
	o, lost := j.outputs[m], j.unreachable[m]
	c.send(&wire.OutputLost{
		Job: j.id, Map: m, Attempt: lost.attempt, Reason: lost.reason, Unreachable: true,
		Reached: c.reachedSince(c.host(o.Addr).failingSince, o.Tracker),
	})
}

// forgetUnreachable forgets what was reported of a map, unless a home wants or fetches it: until a fetch has
// succeeded, a new leader must hear of it.
func (c *Core) forgetUnreachable(j *job, m int) {
	if _, reported := j.unreachable[m]; !reported || j.wants[m] > 0 {
		return
	}
	for _, f := range c.fetches {
		if f.entry != nil && f.job == j && f.output.Map == m {
			return
		}
	}
	delete(j.unreachable, m)
}

// bringBack queues the maps that were set aside until now.
func (c *Core) bringBack() {
	for len(c.aside) > 0 && c.aside[0].until <= c.now {
		x := c.aside[0]
		c.aside = c.aside[1:]
		for _, m := range x.maps {
			if o := x.job.outputs[int(m)]; o != nil && o.named && o.Addr == x.addr {
				c.requeue(x.job, int(m))
			}
		}
	}
}

// requeue queues a map that was set aside, unless no home wants it, or it is queued again.
func (c *Core) requeue(j *job, m int) {
	if m >= len(j.wants) || j.wants[m] == 0 || j.inBatch.Has(m) || !j.inQueue.Add(m) {
		return
	}
	from := c.host(j.outputs[m].Addr)
	from.tracker = j.outputs[m].Tracker
	q := c.queue(from, j)
	q.waiting = append(q.waiting, int32(m))
}
