package core

import (
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// refused handles a proposal that the log cannot take, for example because it is too large. This
// is rare: requests and reports are bounded. The proposal is not repeated.
func (c *Core) refused(r Refused) {
	data := c.pending[r.Key]
	delete(c.pending, r.Key)
	x, err := facts.Decode(data)
	if err != nil || c.leader == nil {
		return // the fact is in the log already, or this job tracker no longer leads
	}
	c.leader.now = c.now
	switch x := x.(type) {
	case *facts.Submitted:
		c.leader.limited.quota.Release(x.Submission.Key)
		c.leader.replyAll(submitKey(x.Submission.Key), Reply{Err: fmt.Errorf("%w: %w", admission.ErrBadSubmission, r.Err)})
	case *facts.Ended:
		c.leader.endRefused(x, r.Err)
	case *facts.TrackerExcluded:
		c.leader.exclusionChanged(x.Tracker, x.Incarnation, false)
	case *facts.GivenUp:
		c.leader.giveUpRefused(x, r.Err)
	case *facts.Skipped:
		c.leader.skipped(x, false)
	case *facts.PoolsChanged:
		c.leader.sharing.pendingPools, c.leader.sharing.poolsError = nil, r.Err.Error()
	case *facts.SettingsChanged:
		c.leader.limited.quota.ReleaseMove(x.Key)
		c.leader.refusedInOrder(changeKey(x.Key), x, r.Err)
	case *facts.SchedulingChanged:
		c.leader.refusedInOrder(scheduleKey, x, r.Err)
	case *facts.Drain:
		c.leader.refusedInOrder(drainKey, x, r.Err)
	case *facts.OperatorExcluded, *facts.OperatorReadmitted:
		c.leader.refusedInOrder(excludeKey, x, r.Err)
	case *facts.Stopped:
		c.leader.stopRefused(x, r.Err)
	}
}

// errNotLogged answers a request if the log refuses its fact.
func errNotLogged(reason error) error { return fmt.Errorf("the log refuses the request: %w", reason) }

// refusedInOrder answers the first request with a key if its fact was refused, and proposes the next one.
func (l *leader) refusedInOrder(key string, x facts.Fact, reason error) {
	if list := l.requests[key]; len(list) > 0 && list[0].proposed != nil && list[0].proposed.Name() == x.Name() {
		l.answerFirst(key, errNotLogged(reason))
		l.proposeFirst(key)
	}
}

// stopRefused answers the kills of a job, which can be killed again. A job that has failed stops with a
// shorter text, if the whole one was refused.
func (l *leader) stopRefused(x *facts.Stopped, reason error) {
	j := l.jobs[x.Job]
	if j == nil || !j.finish.stopProposed {
		return
	}
	if x.Outcome == wire.Failed && len(x.Reason) > 2*shortReason {
		l.propose(&facts.Stopped{Job: x.Job, Outcome: x.Outcome, Reason: wire.Truncate(x.Reason, shortReason)})
		return
	}
	j.finish.stopProposed = false
	l.replyAll(killKey(j.facts), Reply{Err: errNotLogged(reason)})
	if x.Outcome == wire.Killed {
		l.touch(j)
		return
	}
	l.updateLines(j) // not touched: it may fail again at once
	j.faults.AddTrouble(fmt.Sprintf("the job goes on after a failure, as the log refuses its stop: %v", reason))
}

// shortReason bounds the text of a failed job, in bytes, if the log has refused a longer one.
const shortReason = 1000

// endRefused proposes a job's end without counters and troubles: only they can be large.
func (l *leader) endRefused(x *facts.Ended, reason error) {
	j := l.jobs[x.Job]
	if j == nil || j.finish.endFact == nil || len(x.Counters) == 0 {
		return
	}
	shorter := *j.finish.endFact
	shorter.Counters = nil
	shorter.Troubles = []string{wire.Truncate(fmt.Sprintf("its counters are not kept: %v", reason), wire.MaxTrouble)}
	j.finish.endFact = &shorter
	l.propose(j.finish.endFact)
}

// giveUpRefused stops the job of a task that cannot succeed and could not be given up.
func (l *leader) giveUpRefused(x *facts.GivenUp, reason error) {
	j := l.jobs[x.Job]
	if j == nil {
		return
	}
	why := j.bad.doomed[faults.Task{Kind: x.Kind, N: int32(x.Task)}]
	l.stopJob(j, wire.Failed, fmt.Sprintf("%s\nthe job cannot go on without it: %v", why.text, reason))
}
