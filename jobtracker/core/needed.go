package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// A draining tracker stays while homes still need map outputs that it has. To find out, the leader visits its
// outputs, in pieces; then one needed output is enough to know until homes no longer need it.

// neededOutputs is what the last visit of a draining tracker's outputs has found.
type neededOutputs struct {
	by       map[*job]*taskset.Set // the maps that homes need; nil: no visit has ended
	at       time.Duration         // when the visit began
	asOf     neededVersion         // when the visit began
	some     outputRef             // one of by, if found
	found    bool
	visiting bool // the next visit is under way
}

// neededVersion tells whether outputs may have become needed.
type neededVersion struct {
	added   int // see tracker.outputsAdded
	changes int // see longWorks.needChanges
}

// needsOutputs reports whether homes of a job still have to gather map outputs.
func (j *job) needsOutputs() bool {
	return (j.partitions.ungathered > 0 || j.outputs.recomputing) && j.facts.Running()
}

// outputsMayBeNeeded notes that homes of a job need map outputs again.
func (l *leader) outputsMayBeNeeded() { l.works.needChanges++ }

// servesNeeded reports whether a tracker has map outputs that a home still has to gather. While that is not known,
// it has.
func (l *leader) servesNeeded(t *tracker) bool {
	n := &t.drain.needed
	if n.found && l.stillOn(t, n.some) && l.jobs[int(n.some.job)].needsOutputs() {
		return true
	}
	version := neededVersion{t.outputsAdded, l.works.needChanges}
	if n.by == nil || n.found || n.asOf != version {
		l.findNeeded(t)
	}
	return n.by == nil || n.found || n.asOf != version
}

// findNeeded begins to visit the outputs of a tracker, and ends at once if there are few.
func (l *leader) findNeeded(t *tracker) {
	n := &t.drain.needed
	if n.visiting {
		return
	}
	next := neededOutputs{by: make(map[*job]*taskset.Set), at: l.now, asOf: neededVersion{t.outputsAdded, l.works.needChanges}}
	n.visiting = true
	v := &outputVisits{
		visit: func(j *job, m int) {
			if j.needsOutputs() {
				setOf(next.by, j).Add(m)
				next.some, next.found = outputRef{int32(j.facts.N()), int32(m)}, true
			}
		},
		end: func() { *n = next },
	}
	l.visitOutputs(t, v)
	if len(t.outputs) <= l.works.budget/2 {
		l.charge(l.works.Finish(v))
	}
}

// neededAge is the maximum age of the numbers that neededOutputs shows, if there are many outputs.
const neededAge = time.Second

// neededOutputs describes the needed outputs of a tracker. If there are many, the numbers may be old.
func (l *leader) neededOutputs(t *tracker) (parts []string) {
	n := &t.drain.needed
	if few := len(t.outputs) <= l.works.budget/2; n.by == nil || few || l.now-n.at > neededAge {
		l.findNeeded(t)
	}
	if n.by == nil {
		return []string{"map outputs, being counted"}
	}
	for _, j := range sortedJobs(n.by) {
		if j.needsOutputs() {
			parts = append(parts, plural(n.by[j].Len(), "map output")+" of "+j.id.String())
		}
	}
	return parts
}
