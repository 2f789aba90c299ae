package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/announce"
	"github.com/quernmr/quern/jobtracker/core/skew"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// hosting is the partitions at home on a tracker, and its speed.
type hosting struct {
	load      float64               // expected bytes of the partitions
	slowdown  float64               // time of reduces relative to other trackers; 0: not measured
	incoming  int                   // partitions that move to free slots of the tracker
	fetchRate float64               // bytes a second that the tracker fetches; 0: not measured
	bestRate  float64               // the highest fetchRate so far; it stays when fetches wait for slow servers
	awaited   []wire.Awaited        // see wire.Heartbeat
	line      announce.Line         // jobs with outputs to announce to the tracker
	homes     map[*job]*taskset.Set // uncommitted partitions
	ready     map[*job]*taskset.Set // partitions in homes that can be reduced now
}

func newHosting() hosting {
	return hosting{homes: make(map[*job]*taskset.Set), ready: make(map[*job]*taskset.Set)}
}

// partitions is the partitions of a job, and their homes.
type partitions struct {
	homes           []home
	sizes           skew.Sizes
	hot             skew.Keys
	ungathered      int           // partitions that are neither committed nor completely gathered
	noHomeFound     bool          // the job is in todo.noHomeFound
	failedAtHome    taskset.Set   // partitions with a reduce that failed at home
	homeless        taskset.Set   // uncommitted partitions without a home and without a running reduce
	mismatched      taskset.Set   // partitions with homes that gathered other outputs than the chosen ones
	hosts           taskset.Set   // indexes of trackers with homes
	generations     int           // last home generation of this epoch
	reservedSlots   int           // slots reserved while homes gather
	nextMoveCheck   time.Duration // when to check again which ready partitions move
	rankingUntil    time.Duration // when homes stop waiting for a plan, see awaitsRanking
	nextSlowCheck   time.Duration // when to look for slow homes again
	freeAtMoveCheck int           // trackers with free reduce slots at the last check
}

// makeHomes makes all partitions. Those that are not committed are homeless.
func (s *partitions) makeHomes(n int, committed func(p int) bool) {
	s.homes = make([]home, n)
	for p := range s.homes {
		if !committed(p) {
			s.ungathered++
			s.homeless.Add(p)
		}
	}
}

// home is a partition's home and the progress of the partition.
type home struct {
	tracker       *tracker // the tracker that gathers it; nil: none
	generation    wire.Generation
	report        wire.HomeReport // the tracker's last report
	complete      bool            // all chosen outputs are gathered
	mismatchSince time.Duration   // when it came into partitions.mismatched
	mismatches    int             // homes that were given up because they stayed in partitions.mismatched
	bytes         float64         // its part of hosting.load
	size          skew.Size       // of the partition, in partitions.sizes
	reserved      bool            // a reduce slot is reserved for it, see settings.Settings.Classical
	queued        bool            // it is in todo.gathered
	waitingSince  time.Duration   // 1 + the time since which it waits for a slot while other trackers have free ones; 0: it does not
	moves         int             // moves to free slots so far
	slowMoves     int             // times that it moved since a home was slow
	since         time.Duration   // when the tracker became its home, or was found to be
	recomputed    bool            // maps ran again for it, once: then it may be slow itself
	moving        bool            // it is counted in hosting.incoming
}

// A home in partitions.mismatched has mismatchWait to gather the chosen outputs. The job fails
// if maxMismatches homes of one partition do not.
const (
	mismatchWait  = 10 * time.Second
	maxMismatches = 4
)

// recordHome records the home of a partition, assigned or found in an inventory.
func (l *leader) recordHome(j *job, p int, t *tracker, gen wire.Generation) {
	l.clearHome(j, p)
	j.outputs.fetched -= j.partitions.homes[p].report.Bytes
	earlier := &j.partitions.homes[p]
	j.partitions.homes[p] = home{
		tracker: t, generation: gen, since: l.now, bytes: l.partitionBytes(j),
		mismatches: earlier.mismatches, moves: earlier.moves, slowMoves: earlier.slowMoves, size: earlier.size,
	}
	t.hosting.load += j.partitions.homes[p].bytes
	setOf(t.hosting.homes, j).Add(p)
	j.partitions.hosts.Add(t.assign.Index())
	j.outputs.log.Follow(t.assign.Index())
	l.queueShares(t)
}

// clearHome removes the home of a partition. The caller then assigns another or makes the
// partition homeless, unless it is committed.
func (l *leader) clearHome(j *job, p int) {
	h := &j.partitions.homes[p]
	t := h.tracker
	if t == nil {
		return
	}
	if !j.facts.Settled(p) {
		l.setComplete(j, p, false)
	}
	l.releaseHome(j, p)
	h.tracker = nil
	j.partitions.mismatched.Remove(p)
	homes := setOf(t.hosting.homes, j)
	homes.Remove(p)
	if homes.Len() == 0 {
		delete(t.hosting.homes, j)
		delete(t.hosting.ready, j)
		j.partitions.hosts.Remove(t.assign.Index())
		j.outputs.log.Forget(t.assign.Index())
	}
}

// clearSettled removes the home of a partition after its reduce has committed or was given up.
func (l *leader) clearSettled(j *job, p int) {
	if h := &j.partitions.homes[p]; !h.complete {
		h.complete = true
		l.partitionGathered(j)
	}
	l.updateReduce(j, p)
	j.partitions.homeless.Remove(p)
	l.clearHome(j, p)
}

// clearHomes removes all homes of a job that has ended or stops.
func (l *leader) clearHomes(j *job) {
	h := &j.partitions
	h.homeless, h.mismatched, h.failedAtHome = taskset.Set{}, taskset.Set{}, taskset.Set{}
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
	if j.outputs.log != nil {
		j.outputs.log.ForgetAll()
	}
	for p := range h.homes {
		if at := &h.homes[p]; at.tracker != nil {
			l.releaseHome(j, p)
			at.tracker = nil
		}
	}
}

// rehome makes a partition homeless. It gets another home later, which gathers it again. A running
// reduce may read what its tracker has gathered: before it ends, the partition gets no home.
func (l *leader) rehome(j *job, p int) {
	l.clearHome(j, p)
	l.updateReduce(j, p)
}

// moveOutOfService moves homes away from trackers that are out of service, if others exist. A
// partition stays while its reduce runs there.
func (l *leader) moveOutOfService(j *job) {
	for i := range l.fleet.outOfService.All() {
		t := l.fleet.byIndex[i]
		homes := t.hosting.homes[j]
		if homes == nil || !slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool { return t != nil && t.usable() && t.canBeHome() }) {
			continue
		}
		l.moveIdleHomes(j, t)
	}
}

// moveIdleHomes moves a job's partitions away from a tracker, except if their reduces run there.
func (l *leader) moveIdleHomes(j *job, t *tracker) {
	homes := t.hosting.homes[j]
	if homes == nil {
		return
	}
	for p := range homes.All() {
		if _, grant := j.facts.Grant(p); !grant && !j.reduces[p].runsOn(t) {
			l.rehome(j, p)
		}
	}
}

// rehomeAll makes a job's partitions at home on a tracker homeless.
func (l *leader) rehomeAll(j *job, t *tracker) {
	homes := t.hosting.homes[j]
	if homes == nil {
		return
	}
	l.charge(homes.Len())
	for p := range homes.All() {
		l.rehome(j, p)
	}
}

// resendHomes sends a tracker on a new stream the outputs of a job that it does not know, and the homes
// that its inventory does not list: messages may be lost with a stream, and homes with a disk.
func (l *leader) resendHomes(j *job, t *tracker, listed map[homeKey]bool) {
	homes := t.hosting.homes[j]
	if homes == nil {
		return
	}
	for p := range homes.All() {
		h := &j.partitions.homes[p]
		if !listed[homeKey{j.id, p, h.generation}] {
			j.outputs.fetched -= h.report.Bytes
			h.report = wire.HomeReport{}
			l.checkHome(j, p)
			l.send(t, l.setHomeMessage(j, p))
		}
	}
	if !j.recovering { // else endRecovery does it
		l.queueAllOutputs(j, t.assign.Index())
	}
}

// homeReport handles a home's progress report.
func (l *leader) homeReport(t *tracker, r *wire.HomeReport) {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Partition < 0 || r.Partition >= len(j.partitions.homes) || j.facts.Settled(r.Partition) {
		return
	}
	h := &j.partitions.homes[r.Partition]
	if h.tracker != t || h.generation != r.Generation {
		if !j.recovering || t.contact.newInTerm || !h.generation.Less(r.Generation) {
			return // an earlier home of the partition
		}
		j.partitions.homeless.Remove(r.Partition)
		l.recordHome(j, r.Partition, t, r.Generation)
		if j.spec.Classical && !j.facts.Submission().Suspended() {
			l.reserveSlot(j, r.Partition)
		}
	}
	j.outputs.fetched += r.Bytes - h.report.Bytes
	j.partitions.hot.Set(r.Partition, r.Hot, j.spec.plan.Combine)
	h.report = *r
	h.report.Hot = nil
	if r.Maps > 0 || r.Complete {
		j.partitions.sizes.Set(&h.size, r.Partition, r.Bytes)
	}
	l.c.noteChange(j.id)
	l.checkHome(j, r.Partition)
}

// checkHomes checks all homes again after the chosen outputs have changed.
func (l *leader) checkHomes(j *job) {
	j.partitions.mismatched = taskset.Set{}
	for p := range j.partitions.homes {
		if j.partitions.homes[p].tracker != nil && !j.facts.Settled(p) {
			l.checkHome(j, p)
		}
	}
}

// checkHome decides whether a home that reports completion has gathered the chosen outputs. If
// not, all of them are sent to it again, once, and mismatchWait begins.
func (l *leader) checkHome(j *job, p int) {
	h := &j.partitions.homes[p]
	reported := h.report.Complete && h.report.Maps == len(j.maps)
	matches := j.outputs.digestsKnown == len(j.maps) && h.report.Digest == j.outputs.digestSum
	l.setComplete(j, p, reported && matches)
	switch {
	case !reported || matches || j.outputs.digestsKnown < len(j.maps) || j.recovering:
		j.partitions.mismatched.Remove(p)
	case j.partitions.mismatched.Add(p):
		h.mismatchSince = l.now
		l.alarm(j, l.now+mismatchWait)
		l.queueAllOutputs(j, h.tracker.assign.Index())
	}
}

// moveMismatched moves partitions away from homes that were mismatched for too long. It reports
// whether the job can continue.
func (l *leader) moveMismatched(j *job) bool {
	for p := range j.partitions.mismatched.All() {
		h := &j.partitions.homes[p]
		if l.now < h.mismatchSince+mismatchWait {
			continue
		}
		h.mismatches++
		if h.mismatches >= maxMismatches {
			l.stopJob(j, wire.Failed, fmt.Sprintf("partition %d: %d homes in a row gathered other map output than the leader has chosen, the last one on tracker %s",
				p, h.mismatches, h.tracker.Name))
			return false
		}
		j.faults.AddTrouble(fmt.Sprintf("partition %d is gathered again: its home on tracker %s has other map output than the leader has chosen", p, h.tracker.Name))
		l.rehome(j, p)
	}
	return true
}

func (l *leader) setComplete(j *job, p int, complete bool) {
	h := &j.partitions.homes[p]
	if h.complete == complete {
		return
	}
	h.complete = complete
	if complete {
		l.moveEnded(h)
		l.partitionGathered(j)
	} else {
		j.partitions.ungathered++
		if j.partitions.ungathered == 1 {
			l.outputsMayBeNeeded()
			l.rerunMissing(j)
		}
	}
	l.updateReduce(j, p)
}

// partitionGathered counts down partitions.ungathered. After the last one no map has to rerun.
func (l *leader) partitionGathered(j *job) {
	j.partitions.ungathered--
	if j.partitions.ungathered == 0 {
		l.dropUnneededMaps(j)
	}
}

// dropUnneededMaps stops the launch of maps if their output is not needed.
func (l *leader) dropUnneededMaps(j *job) {
	for m := range j.assign.Maps() {
		l.updateMap(j, m)
	}
}

// rerunMissing reruns maps if their outputs were lost while no partition needed them.
func (l *leader) rerunMissing(j *job) {
	if j.outputs.chosen == len(j.maps) {
		return
	}
	for m := range j.maps {
		l.updateMap(j, m)
	}
}

// canReduce reports whether the reduce of a partition may be launched at its home.
func (l *leader) canReduce(j *job, p int) bool {
	_, grant := j.facts.Grant(p)
	return j.partitions.homes[p].complete && j.mayRunReduce(p) && !grant && !j.facts.Settled(p) && j.facts.Running() &&
		j.faults.RetryAt(j.reduces[p].key()) == 0 && !j.bad.holds(j.reduces[p].key())
}

// updateReduce updates whether the reduce of a partition can be launched: in hosting.ready or,
// with a reserved slot, in todo.gathered. Without a home, it updates whether the partition gets one.
func (l *leader) updateReduce(j *job, p int) {
	h := &j.partitions.homes[p]
	t := h.tracker
	if t == nil {
		wanted := j.facts.Running() && !j.facts.Settled(p) && !j.reduces[p].runs()
		if j.partitions.homeless.Set(p, wanted) && wanted {
			l.touch(j)
		}
		return
	}
	ready := l.canReduce(j, p)
	if h.reserved && ready && !h.queued {
		h.queued = true
		l.todo.gathered = append(l.todo.gathered, partition{j, p})
	}
	if !setOf(t.hosting.ready, j).Set(p, ready && !h.reserved) {
		return
	}
	l.updateLines(j)
	h.waitingSince = 0
	j.partitions.checkMovesNow()
	if ready && !h.reserved {
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

// reduceLost handles map outputs that a reduce could not read: the maps rerun, and a new home
// gathers the partition from the start.
func (l *leader) reduceLost(j *job, p int, lost []wire.OutputLost) {
	if !j.facts.Running() || j.facts.Settled(p) {
		return
	}
	l.rehome(j, p)
	for i := range lost {
		if l.jobOfOutput(&lost[i]) == j {
			l.rerunLost(j, &lost[i], nil)
		}
	}
}
