package core

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// tally is what a job's attempts have counted, and how many were launched.
type tally struct {
	launched [2]int
	levels   [wire.Remote + 1]int // launched maps by level
	counters wire.Counters
	read     int64 // bytes, of counted maps
	reduced  int64 // bytes, of counted reduces
}

// ready takes note of an attempt that asks for the grant, or repeats the grant it has.
func (l *Live) ready(a *attempt) {
	j := a.job
	n := a.id.Task.N
	switch {
	case a.id.Task.Kind != j.facts.Kind() || a.killed:
	case j.facts.HasGrant(n, a.id.N):
		l.send(a.tracker, &wire.Grant{Epoch: l.epoch, Attempt: a.id})
	case !slices.Contains(j.service.waitsGrant, a):
		j.service.waitsGrant = append(j.service.waitsGrant, a)
		l.touch(j)
	}
}

// grantReady proposes the grants that nothing stands against.
func (l *Live) grantReady(j *job) {
	if len(j.service.waitsGrant) == 0 || j.facts.Reduces() > 0 && !l.digestsReady(j) {
		return
	}
	j.service.waitsGrant = slices.DeleteFunc(j.service.waitsGrant, func(a *attempt) bool {
		n := a.id.Task.N
		if j.attempt(a.id) != a || a.killed || j.facts.Committed(n) {
			return true
		}
		if _, taken := j.facts.Grant(n); taken {
			return false
		}
		if j.facts.Reduces() > 0 && a.digest != 0 && a.digest != j.outputs.digestSum {
			// Launched before a map gave other records, perhaps under an earlier leader.
			l.kill(a, "it has read map output that was replaced")
			return true
		}
		l.propose(&facts.Granted{Job: j.facts.N(), Task: n, Attempt: a.id.N})
		return true
	})
}

// digestsReady says whether the log has the digests of what reduces read. If not it
// proposes them. Digests that differ from those of committed output end the job.
func (l *Live) digestsReady(j *job) bool {
	if j.outputs.known < len(j.maps) {
		return false
	}
	hash := l.hashOf(j)
	logged, known := j.facts.Digests()
	switch {
	case known && logged == hash:
		return true
	case j.facts.CommittedTasks() > 0:
		l.stopJob(j, wire.Failed, "a map is not deterministic: it gave other records when it ran again, and reduces have committed output made of the first")
	default: // which does nothing while a grant is out
		l.propose(&facts.DigestsKnown{Job: j.facts.N(), Hash: hash})
	}
	return false
}

func (j *job) digests() []uint64 {
	digests := make([]uint64, len(j.maps))
	for m := range j.maps {
		digests[m] = j.maps[m].digest
	}
	return digests
}

// hashOf is the hash of the known digests, computed once for each set of them.
func (l *Live) hashOf(j *job) uint64 {
	if j.outputs.hash == 0 {
		j.outputs.hash = digestsHash(j.digests())
	}
	return j.outputs.hash
}

// granted sends the grant that is now in the log, or settles it if the attempt
// has gone meanwhile.
func (l *Live) granted(j *job, x *facts.Granted, fitted bool) {
	if j == nil || !j.facts.Running() || x.Task < 0 || x.Task >= j.facts.Commits() {
		return
	}
	l.touch(j)
	tk := j.committer(x.Task)
	switch a := tk.numbered(x.Attempt); {
	case a != nil:
		l.ready(a)
	case fitted:
		l.fence(j, x.Task)
	}
	l.updateTask(j, x.Task)
}

// updateTask brings a committing task into or out of the sets it is picked from.
func (l *Live) updateTask(j *job, n int) {
	if j.facts.Kind() == wire.Map {
		l.updateMap(j, n)
	} else {
		l.updateReduce(j, n)
	}
}

// revoked lets a task have another attempt granted.
func (l *Live) revoked(j *job, x *facts.Revoked) {
	delete(j.service.fences, x.Task)
	l.updateTask(j, x.Task)
	l.touch(j)
}

// taskCommitted acts on the success of an attempt that commits output.
func (l *Live) taskCommitted(j *job, tk *task, id wire.AttemptID, r *wire.Result) {
	n := id.Task.N
	switch {
	case j.facts.Committed(n):
		l.count(j, tk, r)
	case j.facts.HasGrant(n, id.N):
		l.count(j, tk, r)
		l.propose(&facts.Committed{Job: j.facts.N(), Task: n, Attempt: id.N})
	}
}

// proposedCommit says whether the log is about to hold the commit of an attempt.
func (l *Live) proposedCommit(j *job, n, attempt int) bool {
	return l.c.pending.has(&facts.Committed{Job: j.facts.N(), Task: n, Attempt: attempt})
}

// committed ends a task.
func (l *Live) committed(j *job, x *facts.Committed) {
	delete(j.service.fences, x.Task)
	tk := j.committer(x.Task)
	for a := range tk.all() {
		if a.id.N != x.Attempt {
			l.kill(a, "another attempt of the task has committed")
		}
	}
	if j.facts.Kind() == wire.Reduce {
		l.leaveCommitted(j, x.Task)
	}
	l.updateTask(j, x.Task)
	l.phases[phaseOf(j.facts.Kind())].completed(l.now)
	l.touch(j)
}
