package core

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// mapOutputs sums up the chosen outputs of a job's maps, and what homes are to be told of them.
type mapOutputs struct {
	known     int                     // maps whose digest is known
	digestSum uint64                  // of those
	chosen    int                     // maps whose output is at hand
	bytes     int64                   // of those outputs
	input     int64                   // bytes of input of those maps
	fetched   int64                   // bytes of them at homes
	remaking  bool                    // lost outputs are made again all the same, see makeAgain
	hash      uint64                  // of all digests when all are known, 0: to be computed
	expected  map[string]*expectation // by tracker that has begun anew
	full      taskset.Set             // indexes of trackers that get all outputs at the end of the Step
	outbox    []int32                 // maps of which new outputs were chosen in this Step
	telling   bool                    // in todo.telling
}

// forget drops what waits for the outputs of a job that has no tasks any more.
func (o *mapOutputs) forget() {
	o.outbox, o.full, o.remaking = nil, taskset.Set{}, false
	clear(o.expected)
}

// mapTask is a map, in 64 bytes: whatever becomes of it, the processor waits once for
// the memory that it is in.
type mapTask struct {
	task
	output
	input int64 // bytes that it reads, 0 before its split is known
}

// output is what is known of a map's output: what a wire.MapOutput says, without names.
// Its digest stays known when the chosen one is lost: homes that hold the records need
// not gather them again.
type output struct {
	attempt  int // the AttemptID's N, of the chosen one
	bytes    int64
	digest   uint64 // of the last one
	tracker  int32  // 1 + its number; 0: there is no output at hand
	known    bool   // its digest is
	expected bool   // it may come back with its tracker, see expectation
	leaving  bool   // it is on a tracker that drains, and is made anew elsewhere
}

func (o *output) atHand() bool { return o.tracker != 0 }

// outputAt is a map whose chosen output is, or was, on a tracker.
type outputAt struct{ job, m int32 }

// updateMap brings map m into or out of the set of maps to launch.
func (l *Live) updateMap(j *job, m int) {
	t := &j.maps[m]
	wanted := !t.runs() && j.facts.Running() && j.faults.RetryAt(t.key()) == 0
	if j.facts.Reduces() == 0 {
		_, grant := j.facts.Grant(m)
		wanted = wanted && !grant && !j.facts.Committed(m)
	} else {
		wanted = wanted && (!t.output.atHand() || t.leaving) && j.awaits(t) && !t.expected
	}
	if wanted {
		l.assign.Enter(&j.assign, m)
	} else {
		l.assign.Leave(&j.assign, m)
	}
}

// awaits says whether somebody has yet to learn a map's digest, or to gather its output.
func (j *job) awaits(t *mapTask) bool { return !t.known || j.housing.open > 0 || j.outputs.remaking }

// mapSucceeded takes the output of a map whose job has reduces.
func (l *Live) mapSucceeded(j *job, t *tracker, m int, id wire.AttemptID, r *wire.Result) {
	if r.Output == nil || !j.facts.Running() {
		return
	}
	out := *r.Output
	out.Map, out.Attempt = m, id.N
	if l.choose(j, t, &out) {
		l.count(j, &j.maps[m].task, r)
		for other := range j.maps[m].all() {
			l.kill(other, "another attempt of the map has succeeded")
		}
	}
	l.updateMap(j, m)
}

// choose makes out the map's output, if the map has none at hand. All chosen
// outputs with the same digest are interchangeable.
func (l *Live) choose(j *job, t *tracker, out *wire.MapOutput) bool {
	m := &j.maps[out.Map]
	if j.faults.Rejected(m.key(), out.Attempt) {
		return false
	}
	if m.output.atHand() {
		// While inventories come in, the later attempt is what homes went on with.
		anew := m.leaving && m.output.tracker != t.number+1
		if !anew && (!j.held || out.Attempt <= m.output.attempt || out.Digest == m.digest) {
			return false
		}
		l.dropOutput(j, out.Map)
	}
	if m.known && m.digest != out.Digest && !j.held && !l.changed(j, out) {
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
		j.housing.movesDue = 0 // partitions may move again
		l.madeAgain(j)
	}
	if j.spec.Classical {
		l.move(j) // perhaps enough for its reduces
	}
	j.outputs.bytes += out.Bytes
	j.outputs.input += m.input
	l.lies(t, outputAt{int32(j.facts.N()), int32(out.Map)})
	j.outputs.outbox = append(j.outputs.outbox, int32(out.Map))
	l.tell(j)
	if j.outputs.known == len(j.maps) {
		l.judgeHomes(j)
		l.touch(j)
	}
	return true
}

// changed deals with a map that gives other records than before: what reduces
// have read of it must not reach the output. It says whether the job can go on.
func (l *Live) changed(j *job, out *wire.MapOutput) bool {
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
	j.service.waitsGrant = nil
	return true
}

// dropOutput takes the chosen output of a map away.
func (l *Live) dropOutput(j *job, n int) {
	m := &j.maps[n]
	j.outputs.chosen--
	if j.spec.Classical {
		l.move(j)
	}
	j.outputs.bytes -= m.output.bytes
	j.outputs.input -= m.input
	j.outputs.outbox = slices.DeleteFunc(j.outputs.outbox, func(m int32) bool { return int(m) == n })
	m.output.tracker, m.leaving = 0, false
}

// lies notes that a chosen output is on a tracker. Before the list grows, those of jobs
// that have ended leave it. Others that are not there any more stay: they are few, and
// to find them each map would have to be looked at.
func (l *Live) lies(t *tracker, o outputAt) {
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

// outputsOn lists the maps whose chosen outputs are on a tracker, by their jobs' numbers.
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

// outputsGone takes back the map outputs of a lost tracker.
func (l *Live) outputsGone(j *job, outputs []int) {
	for _, m := range outputs {
		l.dropOutput(j, m)
		l.updateMap(j, m)
	}
}

// outputLost has a map run again whose chosen output cannot be read.
func (l *Live) outputLost(r *wire.OutputLost) {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Map < 0 || r.Map >= len(j.maps) || j.facts.Reduces() == 0 {
		return
	}
	m := &j.maps[r.Map]
	if !m.output.atHand() || m.output.attempt != r.Attempt {
		return
	}
	rejected := j.faults.Reject(m.key(), r.Attempt)
	j.faults.Trouble(fmt.Sprintf("%v runs again, its output is lost: %s", j.idOf(&m.task), r.Reason))
	j.avoid(&m.task, l.outputOf(j, r.Map).Tracker)
	l.dropOutput(j, r.Map)
	l.updateMap(j, r.Map)
	l.touch(j)
	if rejected > faults.MaxRejected {
		l.stopJob(j, wire.Failed, fmt.Sprintf("%v: %d outputs could not be read, the last: %s", j.idOf(&m.task), rejected, r.Reason))
	}
}

// setOf is the set of a job, made when there is none.
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
