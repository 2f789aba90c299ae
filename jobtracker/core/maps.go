package core

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// mapOutputs sums up the chosen outputs of a job's maps, and what homes have yet to be told
// about them.
type mapOutputs struct {
	known       int                     // maps with a known digest
	digestSum   uint64                  // sum of the known digests
	chosen      int                     // maps with a chosen output at hand
	bytes       int64                   // of the chosen outputs
	input       int64                   // input bytes of the maps with chosen outputs
	fetched     int64                   // bytes of chosen outputs at homes
	recomputing bool                    // see recomputeLost
	hash        uint64                  // of all digests when all are known; 0: not computed
	expected    map[string]*expectation // by restarted tracker
	fullUpdate  taskset.Set             // indexes of trackers that get all outputs at the end of the Step
	outbox      []int32                 // maps with outputs chosen in this Step
	queued      bool                    // in todo.outputsQueued
}

// forget drops the pending updates of a job without tasks.
func (o *mapOutputs) forget() {
	o.outbox, o.fullUpdate, o.recomputing = nil, taskset.Set{}, false
	clear(o.expected)
}

// mapTask is a map, in 64 bytes: one cache line, since a Step may touch many maps.
type mapTask struct {
	task
	output
	input int64 // bytes that it reads; 0 before the splits are read
}

// output is what is known of a map's output: a wire.MapOutput without names. The digest
// outlives the chosen output: homes that hold the records need not gather them again.
type output struct {
	attempt   int // the AttemptID's N of the chosen output
	bytes     int64
	digest    uint64 // of the last chosen output
	tracker   int32  // 1 + its number; 0: no output is at hand
	known     bool   // the digest is known
	expected  bool   // it may return with its tracker, see expectation
	recompute bool   // its tracker drains, so another tracker recomputes it
}

func (o *output) atHand() bool { return o.tracker != 0 }

// outputAt is a map with a chosen output that is or was on a tracker.
type outputAt struct{ job, m int32 }

// updateMap adds map m to the maps to launch, or removes it.
func (l *Live) updateMap(j *job, m int) {
	t := &j.maps[m]
	wanted := !t.runs() && j.facts.Running() && j.faults.RetryAt(t.key()) == 0
	if j.facts.Reduces() == 0 {
		_, grant := j.facts.Grant(m)
		wanted = wanted && !grant && !j.facts.Committed(m)
	} else {
		wanted = wanted && (!t.output.atHand() || t.recompute) && j.needsOutput(t) && !t.expected
	}
	if wanted {
		l.assign.AddPending(&j.assign, m)
	} else {
		l.assign.RemovePending(&j.assign, m)
	}
}

// needsOutput says whether a map's digest is unknown or some partition has yet to gather its
// output.
func (j *job) needsOutput(t *mapTask) bool {
	return !t.known || j.housing.open > 0 || j.outputs.recomputing
}

// mapSucceeded handles the output of a map in a job with reduces.
func (l *Live) mapSucceeded(j *job, t *tracker, m int, id wire.AttemptID, r *wire.Result) {
	if r.Output == nil || !j.facts.Running() {
		return
	}
	out := *r.Output
	out.Map, out.Attempt = m, id.N
	if l.chooseOutput(j, t, &out) {
		l.count(j, &j.maps[m].task, r)
		for other := range j.maps[m].all() {
			l.kill(other, "another attempt of the map has succeeded")
		}
	}
	l.updateMap(j, m)
}

// chooseOutput makes out the map's output unless it has one. Outputs with the same digest are
// interchangeable.
func (l *Live) chooseOutput(j *job, t *tracker, out *wire.MapOutput) bool {
	m := &j.maps[out.Map]
	if j.faults.OutputRejected(m.key(), out.Attempt) {
		return false
	}
	if m.output.atHand() {
		// While inventories come in, the later attempt is the one that homes continued with.
		replaces := m.recompute && m.output.tracker != t.number+1
		if !replaces && (!j.recovering || out.Attempt <= m.output.attempt || out.Digest == m.digest) {
			return false
		}
		l.dropOutput(j, out.Map)
	}
	if m.known && m.digest != out.Digest && !j.recovering && !l.outputChanged(j, out) {
		return false
	}
	if m.known {
		j.outputs.digestSum -= m.digest
	} else {
		j.outputs.known++
	}
	j.outputs.hash = 0
	m.output.tracker, m.output.attempt, m.output.bytes = t.number+1, out.Attempt, out.Bytes
	m.digest, m.known = out.Digest, true
	j.outputs.digestSum += out.Digest
	j.outputs.chosen++
	if j.outputs.chosen == len(j.maps) {
		j.housing.checkMovesNow()
		l.recomputeEnded(j)
	}
	if j.spec.Classical {
		l.updateLines(j) // its reduces may be able to start
	}
	j.outputs.bytes += out.Bytes
	j.outputs.input += m.input
	l.recordOutput(t, outputAt{int32(j.facts.N()), int32(out.Map)})
	j.outputs.outbox = append(j.outputs.outbox, int32(out.Map))
	l.queueOutputs(j)
	if j.outputs.known == len(j.maps) {
		l.judgeHomes(j)
		l.touch(j)
	}
	return true
}

// outputChanged handles a map that produced other records than before: what reduces have read
// of it must not be committed. It says whether the job can go on.
func (l *Live) outputChanged(j *job, out *wire.MapOutput) bool {
	id := j.idOf(&j.maps[out.Map].task)
	if j.facts.MayHaveOutput() {
		l.stopJob(j, wire.Failed, fmt.Sprintf(
			"%v is not deterministic: %v gives other records than an attempt that committed reduces have read",
			id, wire.AttemptID{Task: id, N: out.Attempt}))
		return false
	}
	for p := range j.reduces {
		l.setComplete(j, p, false)
		for a := range j.reduces[p].all() {
			l.kill(a, fmt.Sprintf("%v is not deterministic and ran again", id))
		}
	}
	j.service.awaitingGrant = nil
	return true
}

// dropOutput removes the chosen output of a map.
func (l *Live) dropOutput(j *job, n int) {
	m := &j.maps[n]
	j.outputs.chosen--
	if j.spec.Classical {
		l.updateLines(j)
	}
	j.outputs.bytes -= m.output.bytes
	j.outputs.input -= m.input
	j.outputs.outbox = slices.DeleteFunc(j.outputs.outbox, func(m int32) bool { return int(m) == n })
	m.output.tracker, m.recompute = 0, false
}

// recordOutput notes that a chosen output is on a tracker. Before the list grows, outputs of
// ended jobs leave it. Other outdated entries stay: they are few and expensive to find.
func (l *Live) recordOutput(t *tracker, o outputAt) {
	if len(t.outputs) == cap(t.outputs) {
		t.outputs = slices.DeleteFunc(t.outputs, func(o outputAt) bool { return l.jobs[int(o.job)] == nil })
		t.outputs = slices.Grow(t.outputs, len(t.outputs)+1)
	}
	t.outputs = append(t.outputs, o)
}

func (l *Live) stillOn(t *tracker, o outputAt) bool {
	j := l.jobs[int(o.job)]
	return j != nil && j.maps[o.m].output.tracker == t.number+1
}

// outputsOn lists the maps with chosen outputs on a tracker, by job number.
func (l *Live) outputsOn(t *tracker) map[int][]int {
	outputs := make(map[int][]int)
	for _, o := range t.outputs {
		if l.stillOn(t, o) {
			outputs[int(o.job)] = append(outputs[int(o.job)], int(o.m))
		}
	}
	for n, maps := range outputs {
		slices.Sort(maps)
		outputs[n] = slices.Compact(maps)
	}
	return outputs
}

// dropOutputs removes map outputs and reruns their maps if needed.
func (l *Live) dropOutputs(j *job, outputs []int) {
	for _, m := range outputs {
		l.dropOutput(j, m)
		l.updateMap(j, m)
	}
}

// outputLost reruns a map whose chosen output cannot be read.
func (l *Live) outputLost(r *wire.OutputLost) {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Map < 0 || r.Map >= len(j.maps) || j.facts.Reduces() == 0 {
		return
	}
	m := &j.maps[r.Map]
	if !m.output.atHand() || m.output.attempt != r.Attempt {
		return
	}
	rejected := j.faults.RejectOutput(m.key(), r.Attempt)
	j.faults.AddTrouble(fmt.Sprintf("%v runs again, its output is lost: %s", j.idOf(&m.task), r.Reason))
	j.avoid(&m.task, l.outputOf(j, r.Map).Tracker)
	l.dropOutput(j, r.Map)
	l.updateMap(j, r.Map)
	l.touch(j)
	if rejected > faults.MaxRejected {
		l.stopJob(j, wire.Failed, fmt.Sprintf("%v: %d outputs could not be read, the last: %s", j.idOf(&m.task), rejected, r.Reason))
	}
}

// setOf returns the job's set, and creates it if needed.
func setOf(sets map[*job]*taskset.Set, j *job) *taskset.Set {
	s := sets[j]
	if s == nil {
		s = new(taskset.Set)
		sets[j] = s
	}
	return s
}

// digestsHash is FNV-1a over the digests' bytes.
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
