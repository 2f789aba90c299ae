package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// hosting is the partitions at home on a tracker, and its speed.
type hosting struct {
	load      float64               // expected bytes of its homes
	slowdown  float64               // time of reduces relative to other trackers; 0: not measured
	incoming  int                   // partitions that move to its free slots
	fetchRate float64               // bytes a second that its homes fetch; 0: not measured
	homes     map[*job]*taskset.Set // uncommitted partitions at home here
	ready     map[*job]*taskset.Set // those of homes that can be reduced now
}

func newHosting() hosting {
	return hosting{homes: make(map[*job]*taskset.Set), ready: make(map[*job]*taskset.Set)}
}

// housing is the homes of a job's partitions.
type housing struct {
	homes         []home
	open          int           // partitions that are neither committed nor completely gathered
	noHomeFound   bool          // in todo.noHomeFound
	failedAtHome  taskset.Set   // partitions whose reduces failed at home
	homeless      taskset.Set   // partitions without a home
	wrong         taskset.Set   // partitions whose homes hold other outputs than the chosen ones
	hosts         taskset.Set   // indexes of trackers with homes
	gen           int           // home generations assigned in this epoch
	reservedSlots int           // slots reserved while homes gather
	movesDue      time.Duration // when to check which ready partitions move
	rankingDue    time.Duration // when homes stop waiting for a plan, see awaitsRanking
	movesFree     int           // trackers with free reduce slots at the last check
}

// makeHomes makes the homes of all partitions. Those that are not committed are homeless.
func (h *housing) makeHomes(partitions int, committed func(p int) bool) {
	h.homes = make([]home, partitions)
	for p := range h.homes {
		if !committed(p) {
			h.open++
			h.homeless.Add(p)
		}
	}
}

// home is the tracker that gathers a partition, and its progress.
type home struct {
	tracker    *tracker // nil: none
	gen        wire.Generation
	report     wire.HomeReport // the last report
	complete   bool            // it holds all chosen outputs
	wrongSince time.Duration   // when it was found in housing.wrong
	wrongHomes int             // homes of the partition given up because they were wrong
	bytes      float64         // its share of hosting.load
	reserved   bool            // a reduce slot is reserved, see settings.Settings.Classical
	queued     bool            // in todo.gathered
	waitsSince time.Duration   // 1 + since when it is ready while only other trackers have free slots; 0: it is not
	moves      int             // moves of the partition to free slots
	incoming   bool            // counted in hosting.incoming
}

// wrongWait is how long a home may hold other outputs than the chosen ones after it was told
// them. maxWrongHomes is how many homes of a partition may exceed that.
const (
	wrongWait     = 10 * time.Second
	maxWrongHomes = 4
)

// recordHome notes the home of a partition, assigned or found in an inventory.
func (l *Live) recordHome(j *job, p int, t *tracker, gen wire.Generation) {
	l.clearHome(j, p)
	j.outputs.fetched -= j.housing.homes[p].report.Bytes
	j.housing.homes[p] = home{tracker: t, gen: gen, wrongHomes: j.housing.homes[p].wrongHomes, moves: j.housing.homes[p].moves, bytes: l.partitionBytes(j)}
	t.hosting.load += j.housing.homes[p].bytes
	setOf(t.hosting.homes, j).Add(p)
	j.housing.hosts.Add(t.assign.Index())
	l.queueShares(t)
}

// clearHome removes the home of a partition. The caller decides where the partition goes.
func (l *Live) clearHome(j *job, p int) {
	h := &j.housing.homes[p]
	t := h.tracker
	if t == nil {
		return
	}
	if !j.facts.Committed(p) {
		l.setComplete(j, p, false)
	}
	l.dropHome(j, p)
	h.tracker = nil
	j.housing.wrong.Remove(p)
	homes := setOf(t.hosting.homes, j)
	homes.Remove(p)
	if homes.Len() == 0 {
		delete(t.hosting.homes, j)
		delete(t.hosting.ready, j)
		j.housing.hosts.Remove(t.assign.Index())
		j.outputs.fullUpdate.Remove(t.assign.Index())
	}
}

// clearCommitted removes the home of a committed partition.
func (l *Live) clearCommitted(j *job, p int) {
	if h := &j.housing.homes[p]; !h.complete {
		h.complete = true
		l.partitionGathered(j)
	}
	l.updateReduce(j, p)
	j.housing.homeless.Remove(p)
	l.clearHome(j, p)
}

// clearHomes removes all homes of a job that needs none any more.
func (l *Live) clearHomes(j *job) {
	h := &j.housing
	h.homeless, h.wrong, h.failedAtHome = taskset.Set{}, taskset.Set{}, taskset.Set{}
	for i := range h.hosts.All() {
		t := l.fleet.byIndex[i]
		if ready := t.hosting.ready[j]; ready != nil {
			l.assign.AddReady(&j.assign, &t.assign, -ready.Len())
		}
		delete(t.hosting.ready, j)
		delete(t.hosting.homes, j)
		l.refresh(t)
	}
	h.hosts = taskset.Set{}
	for p := range h.homes {
		if at := &h.homes[p]; at.tracker != nil {
			l.dropHome(j, p)
			at.tracker = nil
		}
	}
}

// rehome makes a partition homeless, so that a home with a higher generation gathers it again.
func (l *Live) rehome(j *job, p int) {
	l.clearHome(j, p)
	j.housing.homeless.Add(p)
	l.touch(j)
}

// moveOutOfService moves homes away from trackers out of service, if there are others. A
// partition with a running reduce stays until that has ended.
func (l *Live) moveOutOfService(j *job) {
	for i := range l.fleet.outOfService.All() {
		t := l.fleet.byIndex[i]
		homes := t.hosting.homes[j]
		if homes == nil || !slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool { return t != nil && t.usable() && t.canBeHome() }) {
			continue
		}
		for p := range homes.All() {
			if _, grant := j.facts.Grant(p); !grant && !j.reduces[p].runs() {
				l.rehome(j, p)
			}
		}
	}
}

// rehomeAll moves the job's homes away from a tracker.
func (l *Live) rehomeAll(j *job, t *tracker) {
	homes := t.hosting.homes[j]
	if homes == nil {
		return
	}
	for p := range homes.All() {
		l.rehome(j, p)
	}
}

// resendHomes tells a tracker on a new stream all outputs, and its homes that the inventory
// lacks: messages may be lost. Homes of a recovered job that an earlier inventory listed may
// have been lost with a disk.
func (l *Live) resendHomes(j *job, t *tracker, named map[homeKey]bool) {
	homes := t.hosting.homes[j]
	if homes == nil {
		return
	}
	for p := range homes.All() {
		h := &j.housing.homes[p]
		if !named[homeKey{j.id, p, h.gen}] {
			j.outputs.fetched -= h.report.Bytes
			h.report = wire.HomeReport{}
			l.judgeHome(j, p)
			l.send(t, l.setHome(j, p))
		}
	}
	l.queueAllOutputs(j, t.assign.Index())
}

// homeReport handles a home's progress report.
func (l *Live) homeReport(t *tracker, r *wire.HomeReport) {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Partition < 0 || r.Partition >= len(j.housing.homes) || j.facts.Committed(r.Partition) {
		return
	}
	h := &j.housing.homes[r.Partition]
	if h.tracker != t || h.gen != r.Generation {
		if !j.recovering || t.contact.newInTerm || !h.gen.Less(r.Generation) {
			return // an earlier home
		}
		j.housing.homeless.Remove(r.Partition)
		l.recordHome(j, r.Partition, t, r.Generation)
		if j.spec.Classical && !j.facts.Submission().Suspended() {
			l.reserveSlot(j, r.Partition)
		}
	}
	j.outputs.fetched += r.Bytes - h.report.Bytes
	h.report = *r
	l.judgeHome(j, r.Partition)
}

// judgeHomes judges all homes again after the chosen outputs have changed.
func (l *Live) judgeHomes(j *job) {
	j.housing.wrong = taskset.Set{}
	for p := range j.housing.homes {
		if j.housing.homes[p].tracker != nil && !j.facts.Committed(p) {
			l.judgeHome(j, p)
		}
	}
}

// judgeHome decides whether a home that reports completion has merged the chosen outputs. If
// not, it is told all of them again, once, and gets wrongWait to fetch them.
func (l *Live) judgeHome(j *job, p int) {
	h := &j.housing.homes[p]
	says := h.report.Complete && h.report.Maps == len(j.maps)
	same := j.outputs.known == len(j.maps) && h.report.Digest == j.outputs.digestSum
	l.setComplete(j, p, says && same)
	switch {
	case !says || same || j.outputs.known < len(j.maps) || j.recovering:
		j.housing.wrong.Remove(p)
	case j.housing.wrong.Add(p):
		h.wrongSince = l.now
		l.alarm(j, l.now+wrongWait)
		l.queueAllOutputs(j, h.tracker.assign.Index())
	}
}

// moveWrong moves partitions whose homes held wrong outputs for too long. It says whether the
// job can go on.
func (l *Live) moveWrong(j *job) bool {
	for p := range j.housing.wrong.All() {
		h := &j.housing.homes[p]
		if l.now < h.wrongSince+wrongWait {
			continue
		}
		h.wrongHomes++
		if h.wrongHomes >= maxWrongHomes {
			l.stopJob(j, wire.Failed, fmt.Sprintf("partition %d: %d homes one after the other held other map output than the chosen one, the last on tracker %s",
				p, h.wrongHomes, h.tracker.Name))
			return false
		}
		j.faults.AddTrouble(fmt.Sprintf("partition %d is gathered again: its home on tracker %s held other map output than the chosen one", p, h.tracker.Name))
		l.rehome(j, p)
	}
	return true
}

func (l *Live) setComplete(j *job, p int, complete bool) {
	h := &j.housing.homes[p]
	if h.complete == complete {
		return
	}
	h.complete = complete
	if complete {
		l.moveEnded(h)
		l.partitionGathered(j)
	} else {
		j.housing.open++
		if j.housing.open == 1 {
			l.rerunMissing(j)
		}
	}
	l.updateReduce(j, p)
}

// partitionGathered counts down housing.open. After the last partition no map has to rerun.
func (l *Live) partitionGathered(j *job) {
	j.housing.open--
	if j.housing.open == 0 {
		l.dropUnneededMaps(j)
	}
}

// dropUnneededMaps removes maps from those to launch if their output is not needed.
func (l *Live) dropUnneededMaps(j *job) {
	for m := range j.assign.Maps() {
		l.updateMap(j, m)
	}
}

// rerunMissing reruns maps whose outputs were lost while no partition needed them.
func (l *Live) rerunMissing(j *job) {
	if j.outputs.chosen == len(j.maps) {
		return
	}
	for m := range j.maps {
		l.updateMap(j, m)
	}
}

// canReduce says whether a reduce of the partition may be launched at its home.
func (l *Live) canReduce(j *job, p int) bool {
	_, grant := j.facts.Grant(p)
	return j.housing.homes[p].complete && !j.reduces[p].runs() && !grant && !j.facts.Committed(p) && j.facts.Running() &&
		j.faults.RetryAt(j.reduces[p].key()) == 0
}

// updateReduce adds a partition to those that its home's tracker can reduce, or removes it.
func (l *Live) updateReduce(j *job, p int) {
	h := &j.housing.homes[p]
	t := h.tracker
	if t == nil {
		return
	}
	can := l.canReduce(j, p)
	if h.reserved && can && !h.queued {
		h.queued = true
		l.todo.gathered = append(l.todo.gathered, partition{j, p})
	}
	if !setOf(t.hosting.ready, j).Set(p, can && !h.reserved) {
		return
	}
	l.updateLines(j)
	h.waitsSince = 0
	j.housing.checkMovesNow()
	if can && !h.reserved {
		if l.assign.AddReady(&j.assign, &t.assign, 1) == 1 {
			l.phases[reducePhase].planNow(l.now)
		}
	} else {
		if l.assign.AddReady(&j.assign, &t.assign, -1) == 0 {
			l.recomputeEnded(j)
		}
	}
	l.refresh(t)
}

// reduceLost handles segments that a reduce could not read: the maps rerun, and a new home
// gathers the partition from the start.
func (l *Live) reduceLost(j *job, p int, lost []wire.OutputLost) {
	if !j.facts.Running() || j.facts.Committed(p) {
		return
	}
	l.rehome(j, p)
	for i := range lost {
		if lost[i].Job == j.id {
			l.outputLost(&lost[i])
		}
	}
}

// outputsPerMessage keeps an Outputs well below the maximum frame.
const outputsPerMessage = 5000

// flushOutputs sends the outputs chosen in this Step to the homes' trackers, or all outputs to
// trackers in fullUpdate.
func (l *Live) flushOutputs() {
	slices.SortFunc(l.todo.outputsQueued, func(x, y *job) int { return cmp.Compare(x.facts.N(), y.facts.N()) })
	for _, j := range l.todo.outputsQueued {
		j.outputs.queued = false
		if j.recovering {
			continue // release queues all outputs
		}
		var news []wire.MapOutput // shared by all trackers
		for i := range j.housing.hosts.All() {
			t := l.fleet.byIndex[i]
			switch {
			case !t.usable(): // gets all outputs after its inventory
			case j.outputs.fullUpdate.Has(i):
				l.sendOutputs(j, t, l.chosenOutputs(j))
			default:
				if news == nil {
					news = l.newOutputs(j)
				}
				l.sendOutputs(j, t, news)
			}
		}
		j.outputs.outbox, j.outputs.fullUpdate = j.outputs.outbox[:0], taskset.Set{}
	}
	l.todo.outputsQueued = l.todo.outputsQueued[:0]
}

// queueOutputs announces a job's new outputs at the end of the Step.
func (l *Live) queueOutputs(j *job) {
	if !j.outputs.queued {
		j.outputs.queued = true
		l.todo.outputsQueued = append(l.todo.outputsQueued, j)
	}
}

// queueAllOutputs announces all outputs of a job to a tracker at the end of the Step.
func (l *Live) queueAllOutputs(j *job, tracker int) {
	j.outputs.fullUpdate.Add(tracker)
	l.queueOutputs(j)
}

func (l *Live) chosenOutputs(j *job) []wire.MapOutput {
	outputs := make([]wire.MapOutput, 0, j.outputs.chosen)
	for m := range j.maps {
		if j.maps[m].output.atHand() {
			outputs = append(outputs, l.outputOf(j, m))
		}
	}
	return outputs
}

func (l *Live) newOutputs(j *job) []wire.MapOutput {
	outputs := make([]wire.MapOutput, len(j.outputs.outbox))
	for i, m := range j.outputs.outbox {
		outputs[i] = l.outputOf(j, int(m))
	}
	return outputs
}

// outputOf is the chosen output of a map.
func (l *Live) outputOf(j *job, m int) wire.MapOutput {
	mt := &j.maps[m]
	t := l.fleet.byNumber[mt.output.tracker-1]
	return wire.MapOutput{
		Map: m, Attempt: mt.output.attempt, Tracker: t.Name, Addr: t.Addr, Bytes: mt.output.bytes, Digest: mt.digest,
	}
}

func (l *Live) sendOutputs(j *job, t *tracker, outputs []wire.MapOutput) {
	for len(outputs) > 0 {
		n := min(len(outputs), outputsPerMessage)
		l.send(t, &wire.Outputs{Epoch: l.epoch, Job: j.id, Outputs: outputs[:n:n]})
		outputs = outputs[n:]
	}
}
