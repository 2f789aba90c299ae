package core

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// recovery has the inventories for which jobs wait after a change of leader, or after the restart
// of a tracker.
type recovery struct {
	awaitSince time.Duration            // when the last awaited inventory came, or the term began
	awaitUntil time.Duration            // when the wait after a change of leader ends
	expecting  map[string]*expectations // by name of the restarted tracker
	awaiting   map[string]bool          // trackers that have not sent their inventories to the new leader
}

func newRecovery(since, until time.Duration) recovery {
	return recovery{awaiting: make(map[string]bool), awaitSince: since, awaitUntil: until, expecting: make(map[string]*expectations)}
}

// expectation is the maps of a job that had chosen outputs on a restarted tracker. The outputs
// may be on its disk, so the maps do not rerun before its inventory is complete, or a lease has
// passed.
type expectation struct {
	of    *expectations
	job   *job
	maps  taskset.Set
	until time.Duration
}

// expectations are those that the same inventory ends. When it is read, they are the work of ending them.
type expectations struct {
	l     *leader
	name  string // of the tracker
	list  []*expectation
	ended bool
}

// trackerRestarted is the event of a tracker that has registered again.
const trackerRestarted = "restarted"

// restarted removes the earlier incarnation of a tracker that has registered again.
func (l *leader) restarted(t *tracker) {
	l.beginDrop(t, trackerRestarted, l.detachCounting(t), func(int) {})
	l.touchAll()
}

// expectOutput makes a job wait for the output of a map that a restarted tracker may report.
func (l *leader) expectOutput(j *job, name string, m int) {
	e := j.outputs.expected[name]
	if e == nil || e.of.ended {
		all := l.recovery.expecting[name]
		if all == nil {
			all = &expectations{l: l, name: name}
			l.recovery.expecting[name] = all
		}
		e = &expectation{of: all, job: j}
		all.list = append(all.list, e)
		if j.outputs.expected == nil {
			j.outputs.expected = make(map[string]*expectation)
		}
		j.outputs.expected[name] = e
	}
	if until := l.now + l.c.cfg.Lease; e.until != until {
		e.until = until
		l.alarm(j, until)
	}
	e.maps.Add(m)
	j.maps[m].expected = true
	l.dropOutput(j, m)
}

// stopExpectingAll ends all expectations of a tracker: its inventory was read, or it is lost. Outputs that are still
// to be dropped are not expected any more.
func (l *leader) stopExpectingAll(name string) {
	for _, w := range l.works.drops { // in any order
		if w.tracker == name {
			w.awaited = false
		}
	}
	if all := l.recovery.expecting[name]; all != nil {
		delete(l.recovery.expecting, name)
		all.ended = true
		l.works.Add(all)
	}
}

// Advance implements pieces.Work.
func (x *expectations) Advance(budget int) (spent int, done bool) {
	for spent < budget && len(x.list) > 0 {
		e := x.list[0]
		spent += 1 + x.l.endExpectation(e, budget-spent)
		if e.maps.Len() == 0 {
			x.list = x.list[1:]
		}
	}
	return spent, len(x.list) == 0
}

// endExpectation reruns up to so many of the maps without an output that the tracker reported, and returns how many it
// looked at.
func (l *leader) endExpectation(e *expectation, most int) (spent int) {
	j, name := e.job, e.of.name
	if !j.facts.Running() {
		e.maps = taskset.Set{}
		return 0
	}
	later := j.outputs.expected[name]
	if later == e {
		later = nil
	}
	for m := range e.maps.All() {
		if spent++; spent > most {
			return spent
		}
		e.maps.Remove(m)
		if later == nil || !later.maps.Has(m) {
			j.maps[m].expected = false
			l.updateMap(j, m)
		}
	}
	if j.outputs.expected[name] == e {
		delete(j.outputs.expected, name)
		l.touch(j)
	}
	return spent
}

// expireExpected ends expectations that are older than a lease.
func (l *leader) expireExpected(j *job) {
	if len(j.outputs.expected) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		if e := j.outputs.expected[name]; l.c.readUntil >= e.until { // else the inventory may be read but not handled yet
			l.charge(l.endExpectation(e, e.maps.Len()))
		}
	}
}
