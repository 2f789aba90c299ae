package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/announce"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// announcing has the trackers with outputs to be announced, see package announce.
type announcing struct {
	ready   taskset.Set   // indexes of trackers that may have tokens
	starved taskset.Set   // indexes of trackers that have none in this announce.Tick
	from    int           // index at which the next Step goes on
	refill  time.Duration // when starved ones get tokens; never: none is starved
}

// queueOutputs makes flushOutputs send a job's new outputs.
func (l *leader) queueOutputs(j *job) {
	if !j.outputs.queued {
		j.outputs.queued = true
		l.todo.outputsQueued = append(l.todo.outputsQueued, j)
	}
}

// queueAllOutputs makes flushOutputs send all outputs of a job to a tracker, except those that it
// knows by its last inventory.
func (l *leader) queueAllOutputs(j *job, tracker int) {
	j.outputs.log.Reader(tracker).All()
	l.queueOutputs(j)
}

// flushOutputs lets homes of jobs with new outputs wait for messages, and sends those that are due.
func (l *leader) flushOutputs() {
	slices.SortFunc(l.todo.outputsQueued, func(x, y *job) int { return cmp.Compare(x.facts.N(), y.facts.N()) })
	for _, j := range l.todo.outputsQueued {
		j.outputs.queued = false
		if j.recovering {
			continue // endRecovery queues all outputs
		}
		for i := range j.partitions.hosts.All() {
			r, t := j.outputs.log.Reader(i), l.fleet.byIndex[i]
			if r.Pending() && t.usable() { // others get all outputs after their inventory
				t.hosting.line.Add(r)
				if !l.announcing.starved.Has(i) {
					l.announcing.ready.Add(i)
				}
			}
		}
	}
	l.todo.outputsQueued = l.todo.outputsQueued[:0]
	l.announce()
}

// maxAnnounced bounds the work of announce in a Step, in messages. Encoding encodedPerMessage outputs
// takes about as long as a message.
const (
	maxAnnounced      = 1024
	encodedPerMessage = 8
)

// announce sends outputs to trackers with tokens, in turn.
func (l *leader) announce() {
	x := &l.announcing
	if l.now >= x.refill {
		for i := range x.starved.All() {
			x.ready.Add(i)
		}
		x.starved, x.refill = taskset.Set{}, never
	}
	for work := 0; work < maxAnnounced && x.ready.Len() > 0; {
		i := x.ready.Next(x.from)
		if i < 0 {
			x.from = 0
			continue
		}
		t := l.fleet.byIndex[i]
		switch {
		case t == nil:
			x.ready.Remove(i)
			continue
		case !t.usable():
			t.hosting.line.Clear()
			x.ready.Remove(i)
			continue
		}
		lists, encoded, ok := t.hosting.line.Take(l.now)
		if len(lists) > 0 {
			l.send(t, &wire.Outputs{Epoch: l.epoch, Lists: lists})
		}
		work += 1 + encoded/encodedPerMessage
		x.from = i + 1
		if !ok {
			x.starved.Add(i)
			x.refill = announce.NextTick(l.now)
		}
		if !ok || t.hosting.line.Len() == 0 {
			x.ready.Remove(i)
		}
	}
	if x.ready.Len() == 0 {
		x.from = 0
	}
}

// wake returns when announce has to be called again.
func (x *announcing) wake(now time.Duration) time.Duration {
	if x.ready.Len() > 0 {
		return now
	}
	return x.refill
}

// outputOf returns the chosen output of a map.
func (l *leader) outputOf(j *job, m int) wire.MapOutput {
	mt := &j.maps[m]
	if mt.output.givenUp {
		return wire.MapOutput{Map: m, Digest: mt.digest, GivenUp: true}
	}
	t := l.fleet.byNumber[mt.output.tracker-1]
	return wire.MapOutput{
		Map: m, Attempt: mt.output.attempt, Tracker: t.Name, Addr: t.Addr, Bytes: mt.output.bytes, Digest: mt.digest,
	}
}
