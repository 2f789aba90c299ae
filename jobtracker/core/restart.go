package core

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// recovery is what a new leader, and jobs whose tracker has restarted, wait for.
type recovery struct {
	awaitDue  time.Duration     // when recovered jobs wait no longer
	expecting map[string][]*job // that have expected the outputs of a tracker, by its name
	awaiting  map[string]bool   // trackers whose inventory recovered jobs wait for
}

func newRecovery(until time.Duration) recovery {
	return recovery{awaiting: make(map[string]bool), awaitDue: until, expecting: make(map[string][]*job)}
}

// expectation is the maps of a job whose chosen outputs lay on a tracker that has
// begun anew. It may have kept them on its disks: before its inventory is in, or
// a lease has passed, they do not run again.
type expectation struct {
	maps taskset.Set
	due  time.Duration
}

// restarted ends an incarnation whose tracker is registered by another process.
func (l *Live) restarted(t *tracker) {
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		if maps := outputs[j.facts.N()]; len(maps) > 0 && j.facts.Running() {
			l.expectOutputs(j, t.Name, maps)
		}
	}
	l.detach(t)
	l.touchAll()
}

// expect has the maps of a set of outputs wait for these to come back.
func (l *Live) expectOutputs(j *job, name string, outputs []int) {
	e := j.outputs.expected[name]
	if e == nil {
		l.recovery.expecting[name] = append(l.recovery.expecting[name], j)
		e = new(expectation)
		if j.outputs.expected == nil {
			j.outputs.expected = make(map[string]*expectation)
		}
		j.outputs.expected[name] = e
	}
	e.due = l.now + l.c.cfg.Lease
	l.alarm(j, e.due)
	for _, m := range outputs {
		e.maps.Add(m)
		j.maps[m].expected = true
		l.dropOutput(j, m)
	}
}

// allExpectedNoMore has no job expect outputs of a tracker any more.
func (l *Live) stopExpectingAll(name string) {
	for _, j := range l.recovery.expecting[name] { // some twice, or not any more
		l.stopExpecting(j, name)
	}
	delete(l.recovery.expecting, name)
}

// expectedNoMore has those maps run again of which no output has come back.
func (l *Live) stopExpecting(j *job, name string) {
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

// expectedTooLong ends the expectations that a lease has passed over.
func (l *Live) expireExpected(j *job) {
	if len(j.outputs.expected) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		if l.c.readUntil >= j.outputs.expected[name].due { // else what tells of them may wait to be taken in
			l.stopExpecting(j, name)
		}
	}
}
