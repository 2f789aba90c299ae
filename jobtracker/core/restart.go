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
	awaitSince time.Duration     // when the last awaited inventory came, or the term began
	awaitUntil time.Duration     // when the wait after a change of leader ends
	expecting  map[string][]*job // jobs with expectations, by name of the restarted tracker
	awaiting   map[string]bool   // trackers that have not sent their inventories to the new leader
}

func newRecovery(since, until time.Duration) recovery {
	return recovery{awaiting: make(map[string]bool), awaitSince: since, awaitUntil: until, expecting: make(map[string][]*job)}
}

// expectation is the maps of a job that had chosen outputs on a restarted tracker. The outputs
// may be on its disk, so the maps do not rerun before its inventory is complete, or a lease has
// passed.
type expectation struct {
	maps  taskset.Set
	until time.Duration
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
	if e == nil {
		l.recovery.expecting[name] = append(l.recovery.expecting[name], j)
		e = new(expectation)
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

// stopExpectingAll ends all expectations of a tracker.
func (l *leader) stopExpectingAll(name string) {
	for _, j := range l.recovery.expecting[name] { // a job may be listed twice, or no longer expect outputs
		l.stopExpecting(j, name)
	}
	delete(l.recovery.expecting, name)
}

// stopExpecting ends a job's expectation. It reruns the maps if the tracker did not report their
// outputs.
func (l *leader) stopExpecting(j *job, name string) {
	e := j.outputs.expected[name]
	if e == nil {
		return
	}
	delete(j.outputs.expected, name)
	for m := range e.maps.All() {
		j.maps[m].expected = false
		l.updateMap(j, m)
	}
	l.touch(j)
}

// expireExpected ends expectations that are older than a lease.
func (l *leader) expireExpected(j *job) {
	if len(j.outputs.expected) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		if l.c.readUntil >= j.outputs.expected[name].until { // else the inventory may be read but not handled yet
			l.stopExpecting(j, name)
		}
	}
}
