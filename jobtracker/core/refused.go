package core

import (
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Facts are bounded where what they hold comes in, so that the log can take them. What is
// refused by the log all the same is not proposed again.

// refused gives up a proposal that the log cannot take.
func (c *Core) refused(r Refused) {
	data := c.pending[r.Key]
	delete(c.pending, r.Key)
	x, err := facts.Decode(data)
	if err != nil || c.live == nil {
		return // settled, or of a job tracker that does not lead any more
	}
	c.live.now = c.now
	switch x := x.(type) {
	case *facts.Submitted:
		c.live.replyAll(submitOf(x.Submission.Key), Reply{Err: fmt.Errorf("%w: %w", admission.ErrBadSubmission, r.Err)})
	case *facts.Ended:
		c.live.endRefused(x, r.Err)
	case *facts.Excluded:
		c.live.excluded(x.Tracker, x.Incarnation, false)
	case *facts.Pooled:
		c.live.sharing.pools, c.live.sharing.badPools = nil, r.Err.Error()
	}
}

// endRefused lets a job end without its counters and troubles, which alone can be many.
func (l *Live) endRefused(x *facts.Ended, why error) {
	j := l.jobs[x.Job]
	if j == nil || j.finish.closing == nil || len(x.Counters) == 0 {
		return
	}
	shorter := *j.finish.closing
	shorter.Counters = nil
	shorter.Troubles = []string{wire.Bounded(fmt.Sprintf("its counters are not kept: %v", why), wire.MaxTrouble)}
	j.finish.closing = &shorter
	l.propose(j.finish.closing)
}
