package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/announce"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// announcing sends outputs to trackers, see package announce. It is a work: one Step may be too short
// for all trackers.
type announcing struct {
	l       *leader
	encoder wire.OutputEncoder
	ready   taskset.Set   // indexes of trackers that may have tokens
	starved taskset.Set   // indexes of trackers that have none in this announce.Tick
	from    int           // index of the tracker that is next
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
			r := j.outputs.log.Reader(i)
			if r.Waiting() {
				continue // then its tracker is ready or starved
			}
			if t := l.fleet.byIndex[i]; r.Pending() && t.usable() { // others get all outputs after their inventory
				t.hosting.line.Add(r)
				if !l.announcing.starved.Has(i) {
					l.announcing.ready.Add(i)
				}
			}
		}
	}
	l.todo.outputsQueued = l.todo.outputsQueued[:0]
	spent, done := l.announcing.Advance(l.works.budget - l.works.visited)
	l.charge(spent)
	if !done {
		l.works.Add(&l.announcing)
	}
}

// costOfList is the cost of a list of outputs in entries of package pieces. An output to encode is one.
const costOfList = 4

// Advance implements pieces.Work: it sends outputs to trackers with tokens, one after the other. Each
// message is an entry. It is more, and may exceed the budget, by its lists and the outputs to encode.
func (x *announcing) Advance(budget int) (spent int, done bool) {
	if x.l.now >= x.refill {
		for i := range x.starved.All() {
			x.ready.Add(i)
		}
		x.starved, x.refill = taskset.Set{}, never
	}
	for spent < budget && x.ready.Len() > 0 {
		i := x.ready.Next(x.from)
		if i < 0 {
			x.from = 0
			continue
		}
		x.from = i + 1
		spent += x.serve(i)
	}
	if x.ready.Len() == 0 {
		x.from = 0
	}
	return spent, x.ready.Len() == 0
}

// serve sends a tracker a message, if it has a token, and returns the entries spent.
func (x *announcing) serve(i int) (spent int) {
	t := x.l.fleet.byIndex[i]
	if t == nil || !t.usable() {
		if t != nil {
			t.hosting.line.Clear()
		}
		x.ready.Remove(i)
		return 1
	}
	lists, encoded, ok := t.hosting.line.Take(x.l.now)
	if len(lists) > 0 {
		x.l.send(t, &wire.Outputs{Epoch: x.l.epoch, Lists: lists})
	}
	if !ok {
		x.starved.Add(i)
		x.refill = announce.NextTick(x.l.now)
	}
	if !ok || t.hosting.line.Len() == 0 {
		x.ready.Remove(i)
	}
	return 1 + costOfList*len(lists) + encoded
}

// outputSum returns wire.MapOutput.Sum of the chosen output of a map.
func (l *leader) outputSum(m *mapTask) uint64 {
	o := wire.MapOutput{Map: int(m.n), Attempt: m.output.attempt, Bytes: m.output.bytes, Digest: m.digest}
	if m.output.givenUp {
		o.Attempt, o.Bytes = 0, 0
		return o.Sum()
	}
	return o.SumAt(l.fleet.places.all[m.output.place-1].hash)
}

// outputOf returns the chosen output of a map.
func (l *leader) outputOf(j *job, m int) wire.MapOutput {
	mt := &j.maps[m]
	if mt.output.givenUp {
		return wire.MapOutput{Map: m, Digest: mt.digest, GivenUp: true}
	}
	t := l.fleet.places.all[mt.output.place-1]
	return wire.MapOutput{
		Map: m, Attempt: mt.output.attempt, Tracker: t.Name, Addr: t.Addr, Bytes: mt.output.bytes, Digest: mt.digest,
	}
}
