package core

import (
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// A task that cannot succeed is given up if mapreduce.*.failures.maxpercent allows it: its job goes
// on without it. A map given up counts as one with an empty output, so that homes and digests
// need no other rule. A reduce given up needs no home any more, like a committed one.

// badTasks is what the leader has proposed about failed tasks, until the log has it. None of these
// tasks is launched meanwhile.
type badTasks struct {
	doomed   map[faults.Task]doom   // tasks to be given up; or their job stops, unless a grant is used
	skipping map[faults.Task]string // tasks that will skip more records, with the place of the last one, which may be empty
}

// doom is why a task cannot succeed.
type doom struct {
	text     string
	onlyTask bool // the cause is only in the task
}

// holds reports whether a task waits for the log.
func (b *badTasks) holds(t faults.Task) bool {
	if len(b.doomed)+len(b.skipping) == 0 {
		return false // the usual case
	}
	_, doomed := b.doomed[t]
	_, skips := b.skipping[t]
	return doomed || skips
}

// doomedTasks counts the tasks of a kind that will be given up.
func (b *badTasks) doomedTasks(k wire.Kind) int {
	n := 0
	for t := range b.doomed {
		if t.Kind == k {
			n++
		}
	}
	return n
}

// giveUpTask ends a task that cannot succeed. Its job goes on without it if the cause is only in
// the task and the job allows it. Else the job stops, or ends without its cleanup. While another
// attempt may commit, nothing is decided.
func (l *leader) giveUpTask(j *job, tk *task, text string, onlyTask bool) {
	switch {
	case tk.kind == wire.Cleanup:
		j.finish.cleanupError = text
		return
	case j.mayCommit(tk):
		l.doom(j, tk, doom{text, onlyTask})
		return
	}
	delete(j.bad.doomed, tk.key()) // another attempt may have doomed it
	percent := j.spec.ForKind(tk.kind).MaxGivenUp
	if percent == 0 || !onlyTask {
		l.stopJob(j, wire.Failed, text)
		return
	}
	total := j.totalTasks(phaseOf(tk.kind))
	n := j.facts.GivenUpTasks(tk.kind).Len() + j.bad.doomedTasks(tk.kind) + 1
	switch {
	case n*100 > percent*total:
		l.stopJob(j, wire.Failed, fmt.Sprintf("%s\n%d of %d %vs have failed for good, and mapreduce.%v.failures.maxpercent=%d allows %d",
			text, n, total, tk.kind, tk.kind, percent, percent*total/100))
		return
	case j.wasRead(tk.kind):
		l.stopJob(j, wire.Failed, text+committedFrom)
		return
	}
	l.doom(j, tk, doom{text, onlyTask})
	l.proposeGivenUp(j, tk)
}

// doom keeps a task from further attempts.
func (l *leader) doom(j *job, tk *task, why doom) {
	if j.bad.doomed == nil {
		j.bad.doomed = make(map[faults.Task]doom)
	}
	j.bad.doomed[tk.key()] = why
	l.updateTask(j, tk)
}

// mayCommit reports whether an attempt of a task has the grant and runs, or is examined by a fence.
func (j *job) mayCommit(tk *task) bool {
	if tk.kind != j.facts.Kind() {
		return false
	}
	attempt, granted := j.facts.Grant(int(tk.n))
	return granted && (tk.attempt(attempt) != nil || j.service.fences[int(tk.n)] != nil)
}

// giveUpRevoked gives up a doomed task after the revocation of its grant.
func (l *leader) giveUpRevoked(j *job, tk *task) {
	if why, doomed := j.bad.doomed[tk.key()]; doomed {
		l.giveUpTask(j, tk, why.text, why.onlyTask)
	}
}

// wasRead reports whether reduces may have committed output from an earlier output of a map.
func (j *job) wasRead(k wire.Kind) bool { return k != j.facts.Kind() && j.facts.MayHaveOutput() }

const committedFrom = "\nthe job cannot go on without it: reduces have committed output from its records"

// proposeGivenUp proposes to give up a doomed task. If an attempt of it has the grant, the fence
// comes first.
func (l *leader) proposeGivenUp(j *job, tk *task) {
	cause := j.bad.doomed[tk.key()].text
	if tk.kind == j.facts.Kind() {
		if _, granted := j.facts.Grant(int(tk.n)); granted {
			return
		}
	}
	if len(j.facts.GivenUpCauses()) >= wire.MaxTroubles {
		cause = ""
	}
	l.propose(&facts.GivenUp{Job: j.facts.N(), Kind: tk.kind, Task: int(tk.n), Cause: wire.Truncate(cause, wire.MaxTrouble)})
}

// givenUp acts on an entry of the log. If it did not fit, an attempt of the task got a grant
// before: a fence settles it. Or a reduce did, which has read the output of the map.
func (l *leader) givenUp(x *facts.GivenUp, changed bool) {
	j := l.jobs[x.Job]
	if j == nil || !j.facts.Running() {
		return
	}
	tk := j.task(wire.TaskID{Job: j.id, Kind: x.Kind, N: x.Task})
	if why, doomed := j.bad.doomed[tk.key()]; !changed {
		if doomed && j.wasRead(x.Kind) {
			l.stopJob(j, wire.Failed, why.text+committedFrom)
		}
		return
	}
	delete(j.bad.doomed, tk.key())
	for a := range tk.all() {
		l.killAttempt(a, "its task was given up")
	}
	switch {
	case x.Kind == wire.Reduce:
		l.clearSettled(j, x.Task)
	case j.facts.Reduces() > 0:
		l.giveUpOutput(j, x.Task)
	default:
		l.updateMap(j, x.Task)
	}
	l.phases[phaseOf(x.Kind)].planSoon(l.now)
	l.touch(j)
}

// giveUpOutput gives a map an empty output.
func (l *leader) giveUpOutput(j *job, m int) {
	mt := &j.maps[m]
	if mt.output.atHand() {
		l.dropOutput(j, m)
	}
	if mt.digestKnown {
		l.restartReduces(j, fmt.Sprintf("%v was given up", j.idOf(&mt.task)))
	}
	mt.output.givenUp = true
	l.setOutput(j, mt, &wire.MapOutput{Digest: wire.GivenUpDigest})
	l.updateMap(j, m)
}
