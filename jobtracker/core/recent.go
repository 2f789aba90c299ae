package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// Limits of the recent attempts, in attempts.
const (
	recentSpan   = 10 * time.Minute
	maxRecent    = 4000
	maxGone      = 2000 // of all ended jobs
	maxGoneOfJob = 500
)

// Recent has attempts in slots by job: those that run, and those that have ended in the last minutes. A long list
// lacks the oldest ends. Jobs that have not ended get the same part of the list each, so that a large job does not
// displace others. Of ended jobs, the list has those that ended under this leader.
type Recent struct {
	Jobs  []wire.JobAttempts
	Since int64 // Unix milliseconds; earlier ends are missing
}

// recentlyEnded has the last attempts of ended jobs, the first job to end first. It is complete since a
// time in Unix milliseconds.
type recentlyEnded struct {
	jobs     []wire.JobAttempts
	attempts int
	since    int64
}

// rememberEnded keeps the last attempts of a job that has ended.
func (l *leader) rememberEnded(j *job) {
	view := j.ended.Freeze()
	of, oldest := lastEnds(&view, j.id, l.fleet.byNumber, l.wall()-recentSpan.Milliseconds(), maxGoneOfJob)
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
func lastEnds(ended *past.View, job wire.JobID, trackers []trackerName, since int64, most int) (list []wire.AttemptStatus, oldest int64) {
	for p := range ended.Latest() {
		end := p.Began + p.Took
		switch {
		case end < since:
			return list, oldest
		case len(list) == most:
			return list, max(since, end)
		case p.Kind.Slotted():
			list = append(list, trackers[p.Tracker].of(job, ended.Status(p)))
		}
	}
	return list, oldest
}

// collecting is the work of collecting the recent attempts of all jobs.
type collecting struct {
	jobRound
	askers
	since int64
	room  int // for running attempts
	jobs  []collected
}

// collected has the attempts of a job: those that run, and a view of those that have ended.
type collected struct {
	id    wire.JobID
	of    wire.JobAttempts
	ended *past.View // nil: none has ended lately
}

// takeRecent begins to collect, unless that is under way.
func (l *leader) takeRecent(r TakeRecent) {
	c := &l.collecting
	if !c.add(r.Token) {
		return
	}
	c.since, c.room, c.jobs = max(l.wall()-recentSpan.Milliseconds(), l.recent.since), maxRecent, nil
	c.jobRound = jobRound{l: l, visit: c.visit, cost: func(j *job) int { return 1 + j.attempts.Len()/16 + j.ended.Stored()/(64*1024) }}
	c.round.Request()
	l.works.Add(c)
}

// Advance implements pieces.Work.
func (c *collecting) Advance(budget int) (spent int, done bool) {
	if spent, done = c.jobRound.Advance(budget); done {
		c.finish()
	}
	return spent, done
}

func (c *collecting) visit(j *job) {
	x := collected{id: j.id}
	if n := j.ended.Stored(); n > 0 {
		if last := j.ended.Last(); last.Began+last.Took >= c.since {
			view := j.ended.Freeze()
			x.ended = &view
		}
	}
	if j.facts.Ended() || x.ended == nil && j.attempts.Len() == 0 {
		return
	}
	for a := range j.attempts.all() {
		if !a.id.Task.Kind.Slotted() {
			continue
		}
		if c.room == 0 {
			c.since = c.l.wall()
			break
		}
		x.of.Attempts = append(x.of.Attempts, c.l.runningStatus(a))
		c.room--
	}
	x.of.Owner, x.of.Access = j.facts.Submission().Owner(), c.l.c.access(j.facts)
	c.jobs = append(c.jobs, x)
}

// finish answers the requests. The goroutine that asks makes the list.
func (c *collecting) finish() {
	l, jobs, since, room := c.l, c.jobs, c.since, c.room
	gone, trackers := l.recent.jobs, slices.Clone(l.fleet.byNumber)
	c.jobs = nil
	c.answer(l.c, Reply{Recent: later(func() *Recent {
		r := &Recent{Since: since}
		part := room / max(1, len(jobs))
		for i := range jobs {
			x := &jobs[i]
			if x.ended != nil {
				ends, oldest := lastEnds(x.ended, x.id, trackers, since, part)
				x.of.Attempts, r.Since = append(x.of.Attempts, ends...), max(r.Since, oldest)
			}
			r.Jobs = append(r.Jobs, x.of)
		}
		r.Jobs = append(r.Jobs, gone...)
		return r
	})})
}
