package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// ErrCursor reports a request for a page after a job or an attempt that the cluster cannot have
// listed.
var ErrCursor = errors.New("unknown cursor")

// Lists are read in pages, so that the core's owner is not held up. Each of these limits ends a page.
// A page may be empty although others follow it.
const (
	pageJobs     = 100    // jobs in a page
	pageAttempts = 200    // attempts in a page
	pageVisits   = 10_000 // other entries that a page reads: tasks, running attempts of listed jobs
)

// page counts the entries read for a page.
type page struct{ items, visits int }

// Statuses returns a page of the jobs that Facts have, at the time now, without counters and troubles.
// The next page begins after next; a zero next means that there is none.
func (c *Core) Statuses(now time.Duration, q Query) (list []wire.JobStatus, next wire.JobID, err error) {
	if err := c.checkCursor(q.After); err != nil {
		return nil, next, err
	}
	jobs := c.facts.JobsBefore(q.After.N)
	if q.Oldest {
		jobs = c.facts.JobsAfter(q.After.N)
	}
	var p page
	last := q.After
	now = max(now, c.now)
	for f := range jobs {
		if p.items == pageJobs || p.visits >= pageVisits {
			return list, last, nil
		}
		last = c.facts.ID(f.N())
		if !c.selects(&q, f) {
			p.visits++
			continue
		}
		s := c.predictedStatus(f, now)
		if c.leader != nil && !f.Ended() {
			p.visits += c.leader.visitsOfStatus(c.leader.jobs[f.N()])
		}
		s.Counters, s.Troubles = nil, nil
		list = append(list, s)
		p.items++
	}
	return list, next, nil
}

// Explanations explains a page of the jobs that have not ended, by id and without speeds. The page begins
// after a job, or with the first one if after is zero; next is as in Statuses.
func (c *Core) Explanations(now time.Duration, after wire.JobID) (list []wire.Explanation, next wire.JobID, err error) {
	if err := c.checkCursor(after); err != nil {
		return nil, next, err
	}
	l := c.leader
	if l == nil {
		return nil, next, nil
	}
	now = max(now, c.now)
	all := l.recentForecast(now, statusForecastAge)
	var p page
	from, _ := slices.BinarySearchFunc(l.order, after.N+1, func(j *job, n int) int { return cmp.Compare(j.facts.N(), n) })
	for _, j := range l.order[from:] {
		if p.items == pageJobs || p.visits >= pageVisits {
			return list, list[len(list)-1].Job, nil
		}
		x := c.explainFacts(j.facts)
		l.explain(&x, now, j.facts.N(), all)
		list = append(list, x)
		p.items, p.visits = p.items+1, p.visits+2*l.visitsOfStatus(j)
	}
	return list, next, nil
}

// visitsOfStatus is the number of entries that a status of the job reads.
func (l *leader) visitsOfStatus(j *job) int {
	n := 1 + j.attempts.Len()
	if j.recovering {
		n += len(l.recovery.awaiting)
	}
	return n
}

// checkCursor refuses a job that the cluster cannot have listed. Facts may have dropped the job since.
func (c *Core) checkCursor(after wire.JobID) error {
	switch last := c.facts.LastJob(); {
	case after == wire.JobID{}:
	case after.Start != c.facts.Boot().Start:
		return fmt.Errorf("%w: %v is a job of another cluster", ErrCursor, after)
	case after.N < 1 || after.N > last.N:
		return fmt.Errorf("%w: the last job is %v, there is no %v", ErrCursor, last, after)
	}
	return nil
}

// Attempts returns a page of a job's attempts by task and number, and its token. The page begins after
// an attempt, or with the first one if after is zero. ok is false for an unknown or ended job, and on
// followers.
func (c *Core) Attempts(id wire.JobID, after wire.AttemptID) (attempts wire.JobAttempts, ok bool, err error) {
	if after != (wire.AttemptID{}) && after.Task.Job != id {
		return wire.JobAttempts{}, false, fmt.Errorf("%w: %v is no attempt of %v", ErrCursor, after, id)
	}
	if c.leader == nil || c.leader.job(id) == nil {
		return wire.JobAttempts{}, false, nil
	}
	j := c.leader.job(id)
	if kind := after.Task.Kind; kind < wire.Fence && after.Task.N >= j.tasksOf(kind) {
		return wire.JobAttempts{}, false, fmt.Errorf("%w: %v has no task of %v", ErrCursor, id, after)
	}
	list, next := c.leader.attemptsAfter(j, after)
	return wire.JobAttempts{Attempts: list, Next: next, Owner: j.facts.Submission().Owner(), Access: c.access(j.facts), Token: j.spec.token}, true, nil
}

// attemptsAfter reads a page of attempts, and the cursor of the next page.
func (l *leader) attemptsAfter(j *job, after wire.AttemptID) (list []wire.AttemptStatus, next wire.AttemptID) {
	var p page
	for kind := max(after.Task.Kind, wire.Setup); kind <= wire.Cleanup; kind++ {
		n := 0
		if kind == after.Task.Kind {
			n = after.Task.N
		}
		for ; n < j.tasksOf(kind); n++ {
			id := wire.TaskID{Job: j.id, Kind: kind, N: n}
			if p.items >= pageAttempts || p.visits >= pageVisits {
				return list, wire.AttemptID{Task: id} // attempts have higher numbers
			}
			of := l.attemptsOf(j, j.task(id))
			if id == after.Task {
				of = slices.DeleteFunc(of, func(s wire.AttemptStatus) bool { return s.Attempt.N <= after.N })
			}
			if room := pageAttempts - p.items; len(of) > room {
				return append(list, of[:room]...), of[room-1].Attempt
			}
			list = append(list, of...)
			p.items, p.visits = p.items+len(of), p.visits+1
		}
	}
	for _, n := range sortedFences(j.service.fences) { // at most one for each task with a grant
		for a := range j.service.fences[n].task.all() {
			if a.id.Compare(after) > 0 {
				list = append(list, l.runningStatus(a))
			}
		}
	}
	return list, next
}

// tasksOf counts the job's tasks of a kind that job.task finds.
func (j *job) tasksOf(kind wire.Kind) int {
	switch kind {
	case wire.Map:
		return len(j.maps)
	case wire.Reduce:
		return len(j.reduces)
	}
	return 1
}

// attemptsOf lists the attempts of a task, by number.
func (l *leader) attemptsOf(j *job, tk *task) (list []wire.AttemptStatus) {
	for p := range j.ended.OfTask(tk.past) {
		list = append(list, l.fleet.byNumber[p.Tracker].of(j.id, j.ended.Status(p)))
	}
	for a := range tk.all() {
		list = append(list, l.runningStatus(a))
	}
	slices.SortFunc(list, func(a, b wire.AttemptStatus) int { return cmp.Compare(a.Attempt.N, b.Attempt.N) })
	return list
}
