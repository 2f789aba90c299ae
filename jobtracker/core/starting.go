package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
)

// earlyCost is what it costs to handle an event that came before the leader was made, in entries.
const earlyCost = 16

// termStart makes the leader of a term in pieces, since it visits all trackers, jobs and submissions.
// Until it is done, events for the leader wait, as they do during the election, and so do entries: facts do not
// change in between.
type termStart struct {
	l           *leader
	trackers    []facts.Tracker
	jobs        []*facts.Job        // that have not ended
	jobCost     int                 // in entries, without the job's tasks
	submissions []*facts.Submission // that have ended, and have their staging directories
	commands    []Command           // that the owner gets with the leader: it skips effects of a job tracker that does not lead
}

// usualJobCost is what it costs to make the state of a job without tasks, in entries.
const usualJobCost = 4

func (c *Core) newTermStart() *termStart {
	s := &termStart{l: newLeader(c), jobCost: usualJobCost}
	s.trackers = slices.Collect(c.facts.Trackers())
	for f := range c.facts.Jobs() {
		if x := f.Submission(); !f.Ended() {
			s.jobs = append(s.jobs, f)
		} else if !x.Open() && !x.Swept() && f.N() == x.First() {
			s.submissions = append(s.submissions, x)
		}
	}
	if c.cfg.History {
		_, ended := c.facts.CountJobs()
		s.jobCost += ended / 256 // see loadProfile
	}
	return s
}

// advance makes state, for a budget of entries. It returns how many it spent, and whether the leader is
// complete.
func (s *termStart) advance(budget int) (spent int, done bool) {
	l := s.l
	l.now = l.c.now
	for ; spent < budget && len(s.trackers) > 0; spent += usualJobCost {
		t := s.trackers[0]
		s.trackers = s.trackers[1:]
		l.addTracker(t)
		l.recovery.awaiting[t.Name] = true
	}
	for spent < budget && len(s.jobs) > 0 {
		f := s.jobs[0]
		s.jobs = s.jobs[1:]
		spent += s.jobCost + max(0, f.Maps()) + f.Reduces()
		age := time.Duration(l.wall()-f.Submission().At()) * time.Millisecond
		j := l.addJob(f, l.now-max(age, 0))
		j.recovering, j.planned.plansSince = true, l.wall()
		j.touched = false
	}
	// The leader's first Step would place all jobs otherwise.
	l.assign.PlaceChanged()
	l.todo.touched = l.todo.touched[:0] // touchAll does it, in pieces
	for ; spent < budget && len(s.submissions) > 0; spent++ {
		l.removeStaging(s.submissions[0])
		s.submissions = s.submissions[1:]
	}
	if spent >= budget {
		return spent, false
	}
	l.recovery.awaitSince, l.recovery.awaitUntil = l.now, l.now+l.c.cfg.Lease
	l.touchAll() // each running job asks for its splits
	l.endRecoveryIfReady()
	l.checkExclusions()
	return spent, true
}

// advanceStart makes a piece of the leader's state, and then handles events that wait for it. It returns
// how many entries it spent.
func (c *Core) advanceStart(budget int) (spent int) {
	if s := c.starting; s != nil {
		var done bool
		before := c.commands
		c.commands = s.commands
		spent, done = s.advance(budget)
		s.commands, c.commands = c.commands, before
		if done {
			c.leader, c.starting, c.commands = s.l, nil, append(c.commands, s.commands...)
		}
	}
	if c.leader == nil || len(c.early) == 0 {
		return spent
	}
	c.leader.now = c.now
	for ; spent < budget && len(c.early) > 0; spent += earlyCost {
		ev := c.early[0]
		c.early = c.early[1:]
		if e, ok := ev.(Entry); ok {
			c.applyEntry(e)
		} else {
			c.leader.handle(ev)
		}
		if c.leader == nil || c.halted {
			return spent
		}
	}
	if len(c.early) == 0 {
		c.early = nil
	}
	return spent
}
