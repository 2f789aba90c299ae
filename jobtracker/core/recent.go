package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// Limits of Recent.
const (
	recentSpan = 10 * time.Minute
	maxRecent  = 4000 // attempts
)

// Recent lists the attempts in slots of each job that has not ended: those that run, and those that have
// ended in the last minutes. A long list lacks the oldest ends: it is complete since a time in Unix
// milliseconds. Each job gets the same part of the list, so that a large job does not displace others.
func (c *Core) Recent() (jobs []wire.JobAttempts, since int64) {
	l := c.leader
	if l == nil {
		return nil, 0
	}
	since = l.wall() - recentSpan.Milliseconds()
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
		n := 0
		for p := range j.ended.Latest() {
			end := p.Began + p.Took
			if end < since {
				break
			}
			if n == part {
				since = end
				break
			}
			if n++; p.Kind.Slotted() {
				jobs[i].Attempts = append(jobs[i].Attempts, l.fleet.byNumber[p.Tracker].of(j.id, j.ended.Status(p)))
			}
		}
	}
	return jobs, since
}
