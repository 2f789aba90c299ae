package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// serviceTasks is the tasks of a job without slots, their progress, and the attempts that wait
// for a grant.
type serviceTasks struct {
	setup, commit, cleanup task
	fences                 map[int]*fence     // by number of the task with the grant
	fencesLaunched         int                // fences of this epoch
	lastAdoptedFence       int32              // number of the last adopted fence; negative, since our own count from 0
	done                   map[wire.Kind]bool // setup, commit or cleanup has succeeded
	retryAt                time.Duration      // when a failed service task may run again
	awaitingGrant          []*attempt         // attempts that asked for a grant
	setupLaunched          time.Duration      // when the last setup attempt was launched
	commitBegan            time.Duration      // when the job began to commit
}

func newServiceTasks() serviceTasks {
	return serviceTasks{
		setup: task{kind: wire.Setup}, commit: task{kind: wire.Commit}, cleanup: task{kind: wire.Cleanup},
		fences: make(map[int]*fence), done: make(map[wire.Kind]bool),
	}
}

// forget drops the waiting attempts and fences of a job that has ended or stops.
func (s *serviceTasks) forget() {
	s.awaitingGrant = nil
	clear(s.fences)
}

// splitsRead is the progress of reading a job's splits.
type splitsRead struct {
	loading  bool  // LoadSplits has no answer yet
	failures int   // failed LoadSplits
	input    int64 // bytes of all splits
}

// fence is the service task that finds out whether the attempt with a grant has committed.
type fence struct {
	task
	subject wire.AttemptID // the attempt with the grant
}

func sortedFences(fences map[int]*fence) []int {
	if len(fences) == 0 {
		return nil // the usual case
	}
	return slices.Sorted(maps.Keys(fences))
}

// delayRetry delays the next attempt of a failed service task.
func (tk *task) delayRetry(l *leader, j *job) {
	if delay := faults.RetryDelay(j.faults.Failures(tk.key())); delay > 0 {
		j.service.retryAt = l.now + delay
		l.alarm(j, j.service.retryAt)
	}
}

// runService launches or queues a service task, unless it runs, is done or must wait.
func (l *leader) runService(j *job, tk *task, subject wire.AttemptID) {
	if tk.runs() {
		l.speculateService(j, tk, subject)
		return
	}
	if tk.queued || !l.mayRunService(j, tk) {
		return
	}
	x, ahead := queuedTask{j, tk, subject}, 0
	for q := range queueOf(tk.kind) + 1 {
		ahead += len(l.services.queues[q])
	}
	if ahead > 0 || !l.launchService(x) {
		l.queueService(x, queueOf(tk.kind))
	}
}

func (l *leader) mayRunService(j *job, tk *task) bool {
	switch {
	case j.recovering, tk.runs(), j.service.done[tk.kind], l.now < j.service.retryAt:
		return false
	case j.finish.stopProposed && tk.kind != wire.Cleanup:
		return false
	}
	return !j.facts.Submission().Suspended() || tk.kind != wire.Setup
}

// serviceSucceeded acts on the success of a setup, commit or cleanup.
func (l *leader) serviceSucceeded(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result) {
	state := l.facts.State(j.facts)
	switch {
	case id.Task.Kind == wire.Setup && state == wire.Preparing:
		if r.Splits == nil || r.Splits.Maps < 0 {
			l.attemptFailed(j, t, tk, id, &wire.Result{Error: "setup reported no number of splits"}, l.now)
			return
		}
		if n := r.Splits.Maps + l.facts.MapsOfOpenJobs(j.facts.Submission()); n > wire.MaxTasks || n < 0 {
			l.attemptFailed(j, t, tk, id, &wire.Result{Fatal: true, Error: fmt.Sprintf("with %d maps of this job, the unfinished jobs of the submission have %d maps, and at most %d are allowed: "+
				"let each map read more (mapreduce.input.fileinputformat.split.minsize)", r.Splits.Maps, n, wire.MaxTasks)}, l.now)
			return
		}
		if err := l.c.cfg.Limits.Maximum.CheckTasks(r.Splits.Maps, j.facts.Reduces()); err != nil {
			l.attemptFailed(j, t, tk, id, &wire.Result{Fatal: true, Error: err.Error()}, l.now)
			return
		}
		j.service.done[wire.Setup] = true
		l.addCounters(j, tk, r)
		l.propose(&facts.SplitsWritten{Job: j.facts.N(), Maps: r.Splits.Maps, Hash: r.Splits.Hash})
	case id.Task.Kind == wire.Commit && state == wire.Committing && !j.finish.stopProposed:
		j.service.done[wire.Commit] = true
		l.addCounters(j, tk, r)
		l.endJob(j, wire.Succeeded, "")
	case id.Task.Kind == wire.Cleanup && state == wire.Stopping:
		j.service.done[wire.Cleanup] = true
		l.endJob(j, j.facts.Stop().Outcome, strings.TrimRight(j.facts.Stop().Reason, "\n"))
	}
	if j.service.done[tk.kind] {
		l.killOthers(tk, id.N, otherServed)
	}
}

// otherServed is the reason to kill the other attempt of a service task.
const otherServed = "another attempt of the task has succeeded"

// addFence adds a fence for the attempt with a task's grant. Before the result of the fence, the
// task gets no other attempt.
func (l *leader) addFence(j *job, n int) {
	attempt, ok := j.facts.Grant(n)
	if !ok || j.recovering || j.service.fences[n] != nil || !j.facts.Running() {
		return
	}
	j.service.fences[n] = &fence{
		task:    task{kind: wire.Fence, n: int32(j.service.fencesLaunched)},
		subject: wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: j.facts.Kind(), N: n}, N: attempt},
	}
	j.service.fencesLaunched++
	l.touch(j)
}

// fenceSucceeded acts on the result of a fence. It ignores fences of earlier leaders.
func (l *leader) fenceSucceeded(j *job, tk *task, id wire.AttemptID, r *wire.Result) {
	l.killOthers(tk, id.N, otherServed)
	for _, taskN := range sortedFences(j.service.fences) {
		f := j.service.fences[taskN]
		if &f.task != tk {
			continue
		}
		delete(j.service.fences, taskN)
		if r.Committed {
			l.addCounters(j, j.committingTask(taskN), r)
			l.propose(&facts.Committed{Job: j.facts.N(), Task: taskN, Attempt: f.subject.N})
		} else {
			l.propose(&facts.Revoked{Job: j.facts.N(), Task: taskN, Attempt: f.subject.N})
		}
		return
	}
}
