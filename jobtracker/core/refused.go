package core

import (
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// refused handles a proposal that the log cannot take. Facts are bounded where their data comes
// in, so this is rare. The proposal is not repeated.
func (c *Core) refused(r Refused) {
	data := c.pending[r.Key]
	delete(c.pending, r.Key)
	x, err := facts.Decode(data)
	if err != nil || c.live == nil {
		return // settled, or this job tracker no longer leads
	}
	c.live.now = c.now
	switch x := x.(type) {
	case *facts.Submitted:
		c.live.replyAll(submitKey(x.Submission.Key), Reply{Err: fmt.Errorf("%w: %w", admission.ErrBadSubmission, r.Err)})
	case *facts.Ended:
		c.live.endRefused(x, r.Err)
	case *facts.TrackerExcluded:
		c.live.excluded(x.Tracker, x.Incarnation, false)
	case *facts.PoolsChanged:
		c.live.sharing.pendingPools, c.live.sharing.poolsError = nil, r.Err.Error()
	}
}

// endRefused proposes the job's end without its counters and troubles, which are its only large
// parts.
func (l *Live) endRefused(x *facts.Ended, why error) {
	j := l.jobs[x.Job]
	if j == nil || j.finish.endFact == nil || len(x.Counters) == 0 {
		return
	}
	shorter := *j.finish.endFact
	shorter.Counters = nil
	shorter.Troubles = []string{wire.Truncate(fmt.Sprintf("its counters are not kept: %v", why), wire.MaxTrouble)}
	j.finish.endFact = &shorter
	l.propose(j.finish.endFact)
}
