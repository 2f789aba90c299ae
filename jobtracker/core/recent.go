package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// Limits of Recent, in attempts.
const (
	recentSpan   = 10 * time.Minute
	maxRecent    = 4000
	maxGone      = 2000 // of all ended jobs
	maxGoneOfJob = 500
)

// recentlyEnded has the last attempts of ended jobs, the first job to end first. It is complete since a
// time in Unix milliseconds.
type recentlyEnded struct {
	jobs     []wire.JobAttempts
	attempts int
	since    int64
}

// rememberEnded keeps the last attempts of a job that has ended.
func (l *leader) rememberEnded(j *job) {
	of, oldest := l.lastEnds(j, l.wall()-recentSpan.Milliseconds(), maxGoneOfJob)
	r := &l.recent
	r.since = max(r.since, oldest)
	if len(of) == 0 {
		return
	}
	r.jobs = append(r.jobs, wire.JobAttempts{Attempts: of, Owner: j.facts.Submission().Owner(), Access: l.c.access(j.facts)})
	for r.attempts += len(of); r.attempts > maxGone; r.jobs = r.jobs[1:] {
		first := r.jobs[0].Attempts
		r.attempts -= len(first)
		r.since = max(r.since, first[0].Began+first[0].Took)
	}
}

// lastEnds lists the attempts of a job that ended since a time, the last one first, and at most some. If it
// leaves out some, oldest is the end of the last that it lists.
func (l *leader) lastEnds(j *job, since int64, most int) (list []wire.AttemptStatus, oldest int64) {
	for p := range j.ended.Latest() {
		end := p.Began + p.Took
		switch {
		case end < since:
			return list, oldest
		case len(list) == most:
			return list, max(since, end)
		case p.Kind.Slotted():
			list = append(list, l.fleet.byNumber[p.Tracker].of(j.id, j.ended.Status(p)))
		}
	}
	return list, oldest
}

// Recent lists attempts in slots by job: those that run, and those that have ended in the last minutes. A
// long list lacks the oldest ends: it is complete since a time in Unix milliseconds. Jobs that have not ended
// get the same part of the list each, so that a large job does not displace others. Of ended jobs, the list
// has those that ended under this leader.
func (c *Core) Recent() (jobs []wire.JobAttempts, since int64) {
	l := c.leader
	if l == nil {
		return nil, 0
	}
	since = max(l.wall()-recentSpan.Milliseconds(), l.recent.since)
	room := maxRecent
	for _, j := range l.order {
		of := wire.JobAttempts{Owner: j.facts.Submission().Owner(), Access: c.access(j.facts)}
		for a := range j.attempts.all() {
			if !a.id.Task.Kind.Slotted() {
				continue
			}
			if room == 0 {
				since = l.wall()
				break
			}
			of.Attempts = append(of.Attempts, l.runningStatus(a))
			room--
		}
		jobs = append(jobs, of)
	}
	part := room / max(1, len(jobs))
	for i, j := range l.order {
		ends, oldest := l.lastEnds(j, since, part)
		jobs[i].Attempts, since = append(jobs[i].Attempts, ends...), max(since, oldest)
	}
	return append(jobs, l.recent.jobs...), since
}
