package core

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/curve"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/slottime"
	"github.com/quernmr/quern/sparselog"
	"github.com/quernmr/quern/wire"
)

// tally counts what a job's attempts did.
type tally struct {
	launched    [2]int               // launched attempts by phase
	killed      [2]int               // killed and lost attempts by phase
	levels      [wire.Remote + 1]int // launched maps by locality
	counters    wire.Counters        // of tasks with task.counted
	lines       sparselog.Limit      // of lines about attempts
	warnings    sparselog.Limit      // of warnings about attempts
	awaitsFirst bool                 // no map or reduce of the job has been launched
	predictions keptPredictions      // of its end
	read        int64                // bytes that counted maps have read
	reduced     int64                // bytes that counted reduces have read
	slots       slottime.Sums
	curve       curve.Curve // bytes over time
}

// attemptReady handles a request for a grant. If the attempt already has the grant,
// the leader sends it again.
func (l *leader) attemptReady(a *attempt) {
	j := a.job
	n := a.id.Task.N
	switch {
	case a.id.Task.Kind != j.facts.Kind() || a.killed():
	case j.facts.HasGrant(n, a.id.N):
		l.send(a.tracker, &wire.Grant{Epoch: l.epoch, Attempt: a.id})
	case !slices.Contains(j.service.awaitingGrant, a):
		j.service.awaitingGrant = append(j.service.awaitingGrant, a)
		l.touch(j)
	}
}

// grantReady proposes grants for waiting attempts.
func (l *leader) grantReady(j *job) {
	if len(j.service.awaitingGrant) == 0 || j.facts.Reduces() > 0 && !l.digestsReady(j) {
		return
	}
	j.service.awaitingGrant = slices.DeleteFunc(j.service.awaitingGrant, func(a *attempt) bool {
		n := a.id.Task.N
		if j.attempt(a.id) != a || a.killed() || j.facts.Settled(n) {
			return true
		}
		if _, taken := j.facts.Grant(n); taken || j.bad.holds(a.task.key()) {
			return false
		}
		if j.facts.Reduces() > 0 && a.digest != 0 && a.digest != j.outputs.digestSum {
			// The attempt read map output that a rerun has replaced, perhaps under an earlier leader.
			l.killAttempt(a, "it has read map output that was replaced")
			return true
		}
		l.propose(&facts.Granted{Job: j.facts.N(), Task: n, Attempt: a.id.N})
		return true
	})
}

// digestsReady reports whether the log has the digests of the chosen map outputs. If not, it
// proposes them, or stops the job if reduces have committed other ones.
func (l *leader) digestsReady(j *job) bool {
	if j.outputs.digestsKnown < len(j.maps) {
		return false
	}
	hash := l.hashOf(j)
	logged, ok := j.facts.Digests()
	switch {
	case ok && logged == hash:
		return true
	case j.facts.CommittedTasks() > 0:
		l.stopJob(j, wire.Failed, "a map is not deterministic: its rerun gave other records, and reduces have committed output from the first run")
	default: // Facts do not change while a task has a grant
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

// hashOf returns the hash of all digests, and computes it if they have changed.
func (l *leader) hashOf(j *job) uint64 {
	if j.outputs.hash == 0 {
		j.outputs.hash = digestsHash(j.digests())
	}
	return j.outputs.hash
}

// granted sends a grant that is in the log. If the attempt has ended, it starts a fence.
func (l *leader) granted(j *job, x *facts.Granted, changed bool) {
	if j == nil || !j.facts.Running() || x.Task < 0 || x.Task >= j.facts.Commits() {
		return
	}
	l.touch(j)
	tk := j.committingTask(x.Task)
	switch a := tk.attempt(x.Attempt); {
	case a != nil:
		l.attemptReady(a)
	case changed:
		l.addFence(j, x.Task)
	}
	l.updateCommitting(j, x.Task)
}

// updateCommitting updates whether a task of the kind that commits output can be launched.
func (l *leader) updateCommitting(j *job, n int) {
	if j.facts.Kind() == wire.Map {
		l.updateMap(j, n)
	} else {
		l.updateReduce(j, n)
	}
}

// revoked lets another attempt of the task have a grant.
func (l *leader) revoked(j *job, x *facts.Revoked) {
	delete(j.service.fences, x.Task)
	l.updateCommitting(j, x.Task)
	l.giveUpRevoked(j, j.committingTask(x.Task))
	l.touch(j)
}

// taskCommitted proposes the commit of a task, after its attempt with the grant has succeeded.
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

// commitProposed reports whether the commit of an attempt is proposed, but not in the log.
func (l *leader) commitProposed(j *job, n, attempt int) bool {
	return l.c.pending.has(&facts.Committed{Job: j.facts.N(), Task: n, Attempt: attempt})
}

// hasCommitted reports whether a commit of a task is proposed: then failures of its other attempts do
// not count.
func (l *leader) hasCommitted(j *job, id wire.TaskID) bool {
	if id.Kind != j.facts.Kind() {
		return false
	}
	attempt, granted := j.facts.Grant(id.N)
	return granted && l.commitProposed(j, id.N, attempt)
}

func (l *leader) committed(j *job, x *facts.Committed) {
	delete(j.service.fences, x.Task)
	tk := j.committingTask(x.Task)
	delete(j.bad.doomed, tk.key())
	l.killOthers(tk, x.Attempt, otherCommitted)
	if j.facts.Kind() == wire.Reduce {
		l.clearSettled(j, x.Task)
	}
	l.updateCommitting(j, x.Task)
	l.phases[phaseOf(j.facts.Kind())].planSoon(l.now)
	l.touch(j)
}

// committing ends attempts that no reduce needs any more: maps that rerun for homes. The job's commit waits
// for all attempts.
func (l *leader) committing(j *job) {
	j.service.commitBegan = l.now
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.killAttempt(a, "all tasks have committed")
	}
	l.touch(j)
}
