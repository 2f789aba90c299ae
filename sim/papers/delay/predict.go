package delay

import (
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
)

// candidate returns the task that the job offers to a remote slot, and its Offer. It is the
// first task, or under the dynamic rule the task with the longest prediction.
func (c *cluster) candidate(j *job) (*task, locality.Offer) {
	for j.tasks[j.first].launched {
		j.first++
	}
	t := j.tasks[j.first]
	o := locality.Offer{Spell: j.wait.Spell(c.now), Average: time.Duration(j.average), Stranded: len(t.replicas) == 0}
	if c.policy.rule.Kind == locality.Dynamic && !o.Stranded {
		t, o.Local, o.Predicted = c.longest(j)
		o.Overhead = c.measured.meter.Wait(t.bytes)
	}
	if t.deferred && !c.policy.asPrinted {
		o.Total = j.wait.Total(c.now) - t.waitAtDefer
	}
	return t, o
}

// longest returns the task with the longest prediction; the first task and not ok if there are
// not enough measurements.
func (c *cluster) longest(j *job) (t *task, wait time.Duration, ok bool) {
	pace := j.pace
	if pace.Local == 0 {
		pace = c.measured.pace
	}
	if pace.Local == 0 {
		return j.tasks[j.first], 0, false
	}
	nodes := make([]locality.Node, len(c.nodes))
	for n := range c.nodes {
		nodes[n] = locality.Node{
			Releases: c.releases(&c.nodes[n]),
			Ahead:    c.nodes[n].queued - 1,
			Task:     pace.Local,
		}
	}
	replicas := make([]locality.Node, 0, 3)
	for _, other := range j.tasks[j.first:] {
		if other.launched {
			continue
		}
		replicas = replicas[:0]
		for _, n := range other.replicas {
			replicas = append(replicas, nodes[n])
		}
		if at, known := locality.Predict(replicas); known && (!ok || at > wait) {
			t, wait, ok = other, at, true
		}
	}
	if !ok {
		t = j.tasks[j.first]
	}
	return t, wait, ok
}

// releases lists the times until each slot of a node is free, ascending.
func (c *cluster) releases(n *node) []time.Duration {
	all := make([]time.Duration, n.free, c.slots)
	for _, t := range n.running {
		ran := c.now - t.started
		left, ok := t.job.pace.Left(t.remote, ran)
		if !ok {
			left, _ = c.measured.pace.Left(t.remote, ran)
		}
		all = append(all, left)
	}
	slices.Sort(all)
	return all
}
