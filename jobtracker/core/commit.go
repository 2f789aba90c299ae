package core

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// tally is the counters of a job's attempts and their numbers.
type tally struct {
	launched [2]int
	levels   [wire.Remote + 1]int // launched maps by locality
	counters wire.Counters
	read     int64 // bytes read by counted maps
	reduced  int64 // bytes read by counted reduces
}

// attemptReady handles an attempt that asks for a grant, and repeats a grant that it has.
func (l *leader) attemptReady(a *attempt) {
	j := a.job
	n := a.id.Task.N
	switch {
	case a.id.Task.Kind != j.facts.Kind() || a.killed:
	case j.facts.HasGrant(n, a.id.N):
		l.send(a.tracker, &wire.Grant{Epoch: l.epoch, Attempt: a.id})
	case !slices.Contains(j.service.awaitingGrant, a):
		j.service.awaitingGrant = append(j.service.awaitingGrant, a)
		l.touch(j)
	}
}

// grantReady proposes all grants that are possible now.
func (l *leader) grantReady(j *job) {
	if len(j.service.awaitingGrant) == 0 || j.facts.Reduces() > 0 && !l.digestsReady(j) {
		return
	}
	j.service.awaitingGrant = slices.DeleteFunc(j.service.awaitingGrant, func(a *attempt) bool {
		n := a.id.Task.N
		if j.attempt(a.id) != a || a.killed || j.facts.Committed(n) {
			return true
		}
		if _, taken := j.facts.Grant(n); taken {
			return false
		}
		if j.facts.Reduces() > 0 && a.digest != 0 && a.digest != j.outputs.digestSum {
			// Launched before a map produced other records, perhaps under an earlier leader.
			l.killAttempt(a, "it has read map output that was replaced")
			return true
		}
		l.propose(&facts.Granted{Job: j.facts.N(), Task: n, Attempt: a.id.N})
		return true
	})
}

// digestsReady says whether the log has the digests that reduces read; if not, it proposes
// them. Digests that differ from those of committed output stop the job.
func (l *leader) digestsReady(j *job) bool {
	if j.outputs.digestsKnown < len(j.maps) {
		return false
	}
	hash := l.hashOf(j)
	logged, known := j.facts.Digests()
	switch {
	case known && logged == hash:
		return true
	case j.facts.CommittedTasks() > 0:
		l.stopJob(j, wire.Failed, "a map is not deterministic: its rerun gave other records, and reduces have committed output from the first run")
	default: // this does nothing while a task has a grant
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

// hashOf is the hash of the known digests, which it computes once for each set of them.
func (l *leader) hashOf(j *job) uint64 {
	if j.outputs.hash == 0 {
		j.outputs.hash = digestsHash(j.digests())
	}
	return j.outputs.hash
}

// granted sends a grant that is in the log, or launches a fence if the attempt is gone.
func (l *leader) granted(j *job, x *facts.Granted, fitted bool) {
	if j == nil || !j.facts.Running() || x.Task < 0 || x.Task >= j.facts.Commits() {
		return
	}
	l.touch(j)
	tk := j.committingTask(x.Task)
	switch a := tk.attempt(x.Attempt); {
	case a != nil:
		l.attemptReady(a)
	case fitted:
		l.addFence(j, x.Task)
	}
	l.updateCommitting(j, x.Task)
}

// updateTask updates whether a committing task can be launched.
func (l *leader) updateCommitting(j *job, n int) {
	if j.facts.Kind() == wire.Map {
		l.updateMap(j, n)
	} else {
		l.updateReduce(j, n)
	}
}

// revoked allows another attempt of the task a grant.
func (l *leader) revoked(j *job, x *facts.Revoked) {
	delete(j.service.fences, x.Task)
	l.updateCommitting(j, x.Task)
	l.touch(j)
}

// taskCommitted acts on the success of an attempt that commits output.
func (l *leader) taskCommitted(j *job, tk *task, id wire.AttemptID, r *wire.Result) {
	n := id.Task.N
	switch {
	case j.facts.Committed(n):
		l.addCounters(j, tk, r)
	case j.facts.HasGrant(n, id.N):
		l.addCounters(j, tk, r)
		l.propose(&facts.Committed{Job: j.facts.N(), Task: n, Attempt: id.N})
	}
}

// proposedCommit says whether the commit of an attempt is proposed.
func (l *leader) commitProposed(j *job, n, attempt int) bool {
	return l.c.pending.has(&facts.Committed{Job: j.facts.N(), Task: n, Attempt: attempt})
}

// committed acts on a task's commit.
func (l *leader) committed(j *job, x *facts.Committed) {
	delete(j.service.fences, x.Task)
	tk := j.committingTask(x.Task)
	for a := range tk.all() {
		if a.id.N != x.Attempt {
			l.killAttempt(a, "another attempt of the task has committed")
		}
	}
	if j.facts.Kind() == wire.Reduce {
		l.clearCommitted(j, x.Task)
	}
	l.updateCommitting(j, x.Task)
	l.phases[phaseOf(j.facts.Kind())].planSoon(l.now)
	l.touch(j)
}
