package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/announce"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// mapOutputs sums up the chosen outputs of a job's maps, and announces them to homes. If a map
// has succeeded more than once, homes gather the chosen output.
type mapOutputs struct {
	digestsKnown    int                     // number of maps with a known digest
	digestSum       uint64                  // sum of the known digests
	chosen          int                     // number of maps with a chosen output at hand
	bytes           int64                   // size of the chosen outputs
	input           int64                   // input bytes of the maps with chosen outputs
	fetched         int64                   // bytes that homes have gathered
	completeSince   time.Duration           // when all outputs were at hand; valid if chosen has all maps
	recomputing     bool                    // see recomputeLost
	recomputeFailed bool                    // a map that recomputeLost reran has failed for good; until all outputs are at hand
	hash            uint64                  // hash of all digests when all are known; 0: not computed
	expected        map[string]*expectation // by name of a restarted tracker
	log             *announce.Log           // announces the outputs; nil before the number of maps is known
	queued          bool                    // the job is in todo.outputsQueued
}

// forget drops all updates of a job that has ended or stops.
func (o *mapOutputs) forget() {
	o.recomputing = false
	clear(o.expected)
}

// mapTask is a map. It has 64 bytes, one cache line: a Step may touch many maps.
type mapTask struct {
	task
	output
	input int64 // bytes of its split; 0 before the splits are read
}

// output is a map's chosen output. The digest stays when the output is lost: homes that have
// gathered the same records need not gather them again.
type output struct {
	attempt     int // number of the attempt that wrote it
	bytes       int64
	digest      uint64 // digest of the last chosen output
	place       int32  // 1 + its place, see places; 0: no output is at hand
	digestKnown bool
	expected    bool // the restarted tracker may still have it, see expectation
	givenUp     bool // the map was given up: its output is empty and on no tracker
	recompute   bool // the tracker drains or is slow, so another one recomputes the output
}

func (o *output) atHand() bool { return o.place != 0 || o.givenUp }

// outputRef names a chosen map output that is or was on a tracker.
type outputRef struct{ job, m int32 }

// updateMap updates whether map m can be launched.
func (l *leader) updateMap(j *job, m int) {
	t := &j.maps[m]
	wanted := !t.runs() && j.facts.Running() && j.faults.RetryAt(t.key()) == 0 && !j.bad.holds(t.key())
	if j.facts.Reduces() == 0 {
		_, grant := j.facts.Grant(m)
		wanted = wanted && !grant && !j.facts.Settled(m)
	} else {
		wanted = wanted && (!t.output.atHand() || t.recompute) && j.needsOutput(t) && !t.expected
	}
	if wanted {
		l.assign.AddPending(&j.assign, m)
	} else {
		l.assign.RemovePending(&j.assign, m)
	}
}

// needsOutput reports whether the digest of a map is unknown, or a home still has to gather its
// output.
func (j *job) needsOutput(t *mapTask) bool {
	return !t.digestKnown || j.partitions.ungathered > 0 || j.outputs.recomputing
}

// mapSucceeded acts on the success of a map in a job with reduces.
func (l *leader) mapSucceeded(j *job, t *tracker, m int, id wire.AttemptID, r *wire.Result) {
	if r.Output == nil || !j.facts.Running() {
		return
	}
	out := *r.Output
	out.Map, out.Attempt = m, id.N
	if l.chooseOutput(j, t, &out) {
		l.addCounters(j, &j.maps[m].task, r)
		l.killOthers(&j.maps[m].task, id.N, otherSucceeded)
	}
	l.updateMap(j, m)
}

// chooseOutput makes out the chosen output of its map, and reports whether it did. A map keeps
// the output that it has, except in the cases below.
func (l *leader) chooseOutput(j *job, t *tracker, out *wire.MapOutput) bool {
	m := &j.maps[out.Map]
	if m.output.givenUp || j.bad.holds(m.key()) || j.faults.OutputRejected(m.key(), out.Attempt) {
		return false
	}
	if l.isGone(&m.output) {
		l.dropOutput(j, out.Map)
	}
	if m.output.atHand() {
		// A draining or slow tracker's output is replaced. In inventories, the latest attempt replaces
		// others with different records: homes have gathered its output.
		replaces := m.recompute && !m.output.isOn(t)
		if !replaces && out.Attempt > m.output.attempt && !m.runs() {
			m.recompute = false // the map ran on the slow tracker again, which would go on and on
		}
		if !replaces && (!j.recovering || out.Attempt <= m.output.attempt || out.Digest == m.digest) {
			return false
		}
		l.dropOutput(j, out.Map)
	}
	if m.digestKnown && m.digest != out.Digest && !j.recovering && !l.outputChanged(j, out) {
		return false
	}
	m.output.place, m.output.attempt = t.place+1, out.Attempt
	l.recordOutput(t, outputRef{int32(j.facts.N()), int32(out.Map)})
	l.setOutput(j, m, out)
	return true
}

// setOutput records the size and digest of the chosen output of a map, and queues it for homes.
func (l *leader) setOutput(j *job, m *mapTask, out *wire.MapOutput) {
	if m.digestKnown {
		j.outputs.digestSum -= m.digest
	} else {
		j.outputs.digestsKnown++
	}
	j.outputs.hash = 0
	m.output.bytes, m.digest, m.digestKnown = out.Bytes, out.Digest, true
	j.outputs.digestSum += out.Digest
	j.outputs.chosen++
	if j.outputs.chosen == len(j.maps) {
		j.outputs.completeSince, j.outputs.recomputeFailed = l.now, false
		l.touch(j)
		j.partitions.checkMovesNow()
		l.recomputeEnded(j)
	}
	if j.spec.Classical {
		l.updateLines(j) // its reduces may be able to start
	}
	j.outputs.bytes += out.Bytes
	j.outputs.input += m.input
	j.outputs.log.Add(int(m.n), l.outputSum(m))
	l.queueOutputs(j)
	if j.outputs.digestsKnown == len(j.maps) {
		l.checkHomes(j)
		l.touch(j)
	}
}

// outputChanged handles a map that produced other records than before. Reduces that have read
// the earlier records must not commit. It reports whether the job can continue.
func (l *leader) outputChanged(j *job, out *wire.MapOutput) bool {
	id := j.idOf(&j.maps[out.Map].task)
	if j.facts.MayHaveOutput() {
		l.stopJob(j, wire.Failed, fmt.Sprintf(
			"%v is not deterministic: %v gives other records than an earlier attempt, and reduces of the earlier records have committed",
			id, wire.AttemptID{Task: id, N: out.Attempt}))
		return false
	}
	l.restartReduces(j, fmt.Sprintf("%v is not deterministic and ran again", id))
	return true
}

// restartReduces ends all reduces, since the map output that they read has changed.
func (l *leader) restartReduces(j *job, reason string) {
	for p := range j.reduces {
		l.setComplete(j, p, false)
		for a := range j.reduces[p].all() {
			l.killAttempt(a, reason)
		}
	}
	j.service.awaitingGrant = nil
}

// dropOutput removes the chosen output of a map.
func (l *leader) dropOutput(j *job, n int) {
	m := &j.maps[n]
	l.c.noteChange(j.id)
	j.outputs.log.Remove(n)
	j.outputs.chosen--
	if j.spec.Classical {
		l.updateLines(j)
	}
	j.outputs.bytes -= m.output.bytes
	j.outputs.input -= m.input
	m.output.place, m.recompute = 0, false
}

// recordOutput adds a chosen output to its tracker's list. When the list grows, outputs of ended jobs are left out.
// Other outdated entries stay: they are few and expensive to find. Works may still read the old array.
func (l *leader) recordOutput(t *tracker, o outputRef) {
	if len(t.outputs) == cap(t.outputs) {
		l.charge(len(t.outputs) / 16)
		outputs := make([]outputRef, 0, 2*len(t.outputs)+1)
		for _, o := range t.outputs {
			if l.jobs[int(o.job)] != nil {
				outputs = append(outputs, o)
			}
		}
		t.outputs = outputs
	}
	t.outputs = append(t.outputs, o)
	t.outputsAdded++
}

func (l *leader) stillOn(t *tracker, o outputRef) bool {
	j := l.jobs[int(o.job)]
	return j != nil && j.maps[o.m].output.isOn(t)
}

// rerunLost reruns a map if its chosen output cannot be read. unreached are the trackers that the
// home does not reach; nil: that is not the cause.
func (l *leader) rerunLost(j *job, r *wire.OutputLost, unreached []string) {
	m := &j.maps[r.Map]
	j.faults.AddTrouble(fmt.Sprintf("%v runs again, its output is lost: %s", j.idOf(&m.task), r.Reason))
	j.avoid(&m.task, l.outputOf(j, r.Map).Tracker)
	if len(unreached) > 0 {
		l.leave(j, &m.task, unreached...)
	}
	l.rejectOutput(j, r.Map, r.Reason)
}

// rejectOutput drops the chosen output of a map, which cannot be read. If the map reruns, it avoids
// the tracker.
func (l *leader) rejectOutput(j *job, n int, reason string) {
	m := &j.maps[n]
	rejected := j.faults.RejectOutput(m.key(), m.output.attempt)
	server := l.outputOf(j, n).Tracker
	if t := l.fleet.trackers[server]; t != nil {
		t.faults.Outputs++
	}
	j.avoid(&m.task, server)
	l.dropOutput(j, n)
	l.updateMap(j, n)
	l.touch(j)
	if rejected > faults.MaxRejected {
		l.stopJob(j, wire.Failed, fmt.Sprintf("%v: %d outputs could not be read, the last: %s", j.idOf(&m.task), rejected, reason))
	}
}

// setOf returns the set of a job, and creates it if needed.
func setOf(sets map[*job]*taskset.Set, j *job) *taskset.Set {
	s := sets[j]
	if s == nil {
		s = new(taskset.Set)
		sets[j] = s
	}
	return s
}

// digestsHash is FNV-1a over the bytes of the digests.
func digestsHash(digests []uint64) uint64 {
	hash := uint64(14695981039346656037)
	for _, d := range digests {
		for range 8 {
			hash = (hash ^ d&0xff) * 1099511628211
			d >>= 8
		}
	}
	return hash
}
