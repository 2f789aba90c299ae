package core

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// recovery is what recovered jobs, and jobs whose tracker restarted, wait for.
type recovery struct {
	awaitUntil  time.Duration     // when recovered jobs stop waiting
	expecting map[string][]*job // jobs that expect outputs of a tracker, by its name
	awaiting  map[string]bool   // trackers whose inventories recovered jobs wait for
}

func newRecovery(until time.Duration) recovery {
	return recovery{awaiting: make(map[string]bool), awaitUntil: until, expecting: make(map[string][]*job)}
}

// expectation is the maps of a job with chosen outputs on a restarted tracker, which may have
// kept them on disk. They do not rerun before its inventory is in, or a lease has passed.
type expectation struct {
	maps taskset.Set
	until  time.Duration
}

// restarted ends an incarnation whose tracker another process has registered.
func (l *leader) restarted(t *tracker) {
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		if maps := outputs[j.facts.N()]; len(maps) > 0 && j.facts.Running() {
			l.expectOutputs(j, t.Name, maps)
		}
	}
	l.detach(t)
	l.touchAll()
}

// expectOutputs makes a job wait for map outputs that a restarted tracker may report.
func (l *leader) expectOutputs(j *job, name string, outputs []int) {
	e := j.outputs.expected[name]
	if e == nil {
		l.recovery.expecting[name] = append(l.recovery.expecting[name], j)
		e = new(expectation)
		if j.outputs.expected == nil {
			j.outputs.expected = make(map[string]*expectation)
		}
		j.outputs.expected[name] = e
	}
	e.until = l.now + l.c.cfg.Lease
	l.alarm(j, e.until)
	for _, m := range outputs {
		e.maps.Add(m)
		j.maps[m].expected = true
		l.dropOutput(j, m)
	}
}

// stopExpectingAll ends all expectations of a tracker.
func (l *leader) stopExpectingAll(name string) {
	for _, j := range l.recovery.expecting[name] { // some twice, some no longer
		l.stopExpecting(j, name)
	}
	delete(l.recovery.expecting, name)
}

// stopExpecting reruns the expected maps of a job whose outputs the tracker did not report.
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
