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

// serviceTasks is the tasks of a job that have no slots, how far they are, and which attempts
// wait for a grant.
type serviceTasks struct {
	setup, commit, cleanup task
	fences                 map[int]*fence // by the task whose grant is in doubt
	numbered               int            // fences numbered in this epoch
	forgotten              int32          // number of the last fence adopted of an earlier leader: below 0, as ours are not
	done                   map[wire.Kind]bool
	retryAt                time.Duration // of a service task that failed
	waitsGrant             []*attempt    // ready attempts that are not granted yet
	preparing              time.Duration // since when, its last setup attempt
	committing             time.Duration // since when
}

func newServiceTasks() serviceTasks {
	return serviceTasks{
		setup: task{kind: wire.Setup}, commit: task{kind: wire.Commit}, cleanup: task{kind: wire.Cleanup},
		fences: make(map[int]*fence), done: make(map[wire.Kind]bool),
	}
}

// forget drops what waits for the tasks of a job that has none any more.
func (s *serviceTasks) forget() {
	s.waitsGrant = nil
	clear(s.fences)
}

// splitsRead is how far the splits of a job are read.
type splitsRead struct {
	loading    bool // LoadSplits is under way
	loadFailed int
	input      int64 // bytes of all of it
}

// fence is the service task that settles whether a granted attempt has committed.
type fence struct {
	task
	subject wire.AttemptID
}

func sortedFences(fences map[int]*fence) []int {
	if len(fences) == 0 {
		return nil // as in nearly every Step
	}
	return slices.Sorted(maps.Keys(fences))
}

// wait holds back the next attempt of a service task that has failed.
func (tk *task) wait(l *Live, j *job) {
	if delay := faults.RetryDelay(j.faults.Failures(tk.key())); delay > 0 {
		j.service.retryAt = l.now + delay
		l.alarm(j, j.service.retryAt)
	}
}

// serve has a service task run, unless it does, is done, or must wait: after a
// failure, for inventories, or for its turn.
func (l *Live) serve(j *job, tk *task, subject wire.AttemptID) {
	if tk.queued || !l.mayServe(j, tk) {
		return
	}
	x, q := turn{j, tk, subject}, queueOf(tk.kind)
	if len(l.services.queues[endsWork])+len(l.services.queues[q]) > 0 || !l.serveNow(x) {
		tk.queued = true
		l.services.queues[q] = append(l.services.queues[q], x)
	}
}

func (l *Live) mayServe(j *job, tk *task) bool {
	switch {
	case j.held, tk.runs(), j.service.done[tk.kind], l.now < j.service.retryAt:
		return false
	case j.finish.stopping && tk.kind != wire.Cleanup:
		return false
	}
	return !j.facts.Submission().Suspended() || tk.kind != wire.Setup
}

// served acts on the success of a setup, commit or cleanup.
func (l *Live) served(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result) {
	state := l.facts.State(j.facts)
	switch {
	case id.Task.Kind == wire.Setup && state == wire.Preparing:
		if r.Splits == nil || r.Splits.Maps < 0 {
			l.failed(j, t, tk, id, &wire.Result{Error: "setup reported no number of splits"}, l.now)
			return
		}
		if n := r.Splits.Maps + l.facts.MapsOfOpenJobs(j.facts.Submission()); n > wire.MaxTasks || n < 0 {
			l.failed(j, t, tk, id, &wire.Result{Fatal: true, Error: fmt.Sprintf("with %d maps of this job, the unended jobs of the submission have %d, at most %d: "+
				"let each map read more (mapreduce.input.fileinputformat.split.minsize)", r.Splits.Maps, n, wire.MaxTasks)}, l.now)
			return
		}
		j.service.done[wire.Setup] = true
		l.count(j, tk, r)
		l.propose(&facts.SplitsWritten{Job: j.facts.N(), Maps: r.Splits.Maps, Hash: r.Splits.Hash})
	case id.Task.Kind == wire.Commit && state == wire.Committing && !j.finish.stopping: // else that is about to be in the log
		j.service.done[wire.Commit] = true
		l.count(j, tk, r)
		l.end(j, wire.Succeeded, "")
	case id.Task.Kind == wire.Cleanup && state == wire.Stopping:
		j.service.done[wire.Cleanup] = true
		l.end(j, j.facts.Stop().Outcome, strings.TrimRight(j.facts.Stop().Reason, "\n"))
	}
}

// fence begins to settle whether the attempt that holds a task's grant has
// committed. Until it is settled the task has no other attempt.
func (l *Live) fence(j *job, n int) {
	attempt, ok := j.facts.Grant(n)
	if !ok || j.held || j.service.fences[n] != nil || !j.facts.Running() {
		return
	}
	j.service.fences[n] = &fence{
		task:    task{kind: wire.Fence, n: int32(j.service.numbered)},
		subject: wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: j.facts.Kind(), N: n}, N: attempt},
	}
	j.service.numbered++
	l.touch(j)
}

// fenced acts on what a fence found, unless it is of an earlier leader.
func (l *Live) fenced(j *job, tk *task, r *wire.Result) {
	for _, taskN := range sortedFences(j.service.fences) {
		f := j.service.fences[taskN]
		if &f.task != tk {
			continue
		}
		delete(j.service.fences, taskN)
		if r.Committed {
			l.count(j, j.committer(taskN), r)
			l.propose(&facts.Committed{Job: j.facts.N(), Task: taskN, Attempt: f.subject.N})
		} else {
			l.propose(&facts.Revoked{Job: j.facts.N(), Task: taskN, Attempt: f.subject.N})
		}
		return
	}
}
