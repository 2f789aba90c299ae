package core

import (
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Changed lists the jobs that are new or may have another status since the last Step began, perhaps
// repeatedly. It leaves out what no event of the job changes: its elapsed time, its predicted end,
// and why it waits. It also leaves out jobs that had ended before. The list is valid until the next
// Step.
func (c *Core) Changed() []wire.JobID { return c.changed }

// noteChange adds a job to the list of Changed.
func (c *Core) noteChange(id wire.JobID) {
	if last := len(c.changed) - 1; last < 0 || c.changed[last] != id {
		c.changed = append(c.changed, id)
	}
}

// noteFact notes the change of the job that a fact is about. Facts about several jobs touch them.
func (c *Core) noteFact(x facts.Fact) {
	switch x := x.(type) {
	case *facts.Submitted:
		if s := c.facts.Submission(x.Submission.Key); s != nil {
			for n := range s.Jobs() {
				c.noteChange(c.facts.ID(s.First() + n))
			}
		}
	case *facts.SplitsWritten:
		c.noteChange(c.facts.ID(x.Job))
	case *facts.GivenUp:
		c.noteChange(c.facts.ID(x.Job))
	case *facts.Committed:
		c.noteChange(c.facts.ID(x.Job))
	case *facts.Committing:
		c.noteChange(c.facts.ID(x.Job))
	case *facts.Stopped:
		c.noteChange(c.facts.ID(x.Job))
	case *facts.Ended:
		c.noteChange(c.facts.ID(x.Job))
	}
}

// Leadership says which job tracker leads, as this one knows it.
type Leadership struct {
	Leader string // id of the latest leader; empty: none is known
	Addr   string // host:port of its API
	Epoch  uint64 // of the latest leader
	Leads  bool   // this job tracker is the leader
}

// Leadership returns which job tracker leads.
func (c *Core) Leadership() Leadership {
	l := c.facts.Leader()
	return Leadership{Leader: l.Leader, Addr: l.Addr, Epoch: c.facts.Epoch(), Leads: c.IsLeader()}
}
