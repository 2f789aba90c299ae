package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/quota"
	"github.com/quernmr/quern/wire"
)

// Limits are the administrator's limits.
type Limits = admission.Limits

// limited is the leader's state for Config.Limits.
type limited struct {
	quota   *quota.Quota
	effects int // effects on files that have no result yet
	setups  int // setup attempts that run
}

func quotaJob(s *facts.Submission) quota.Job {
	return quota.Job{User: s.Owner(), Pool: poolName(s), Priority: s.Priority(), Suspended: s.Suspended()}
}

// minAhead is how many more jobs than may have slots begin at least, see limitAhead.
const minAhead = 10

// limitAhead limits how many jobs are set up ahead, while limits of the pool table keep them from
// slots: twice as many begin as may have slots. Else they would take the places of all other jobs.
func (l *leader) limitAhead() {
	_, table := l.facts.Pools()
	l.limited.quota.SetGroups(func(user, pool string) (groups []quota.Group) {
		for _, x := range table.RunningLimits(user, pool) {
			groups = append(groups, quota.Group{Of: x.Of, Max: x.Max + max(x.Max, minAhead)})
		}
		return groups
	})
}

// effect emits an effect on files.
func (l *leader) effect(c Command) {
	l.limited.effects++
	l.c.emit(c)
}

// effectEnded counts the result of an effect, unless it is an earlier leader's.
func (l *leader) effectEnded(epoch uint64) {
	if epoch == l.epoch {
		l.limited.effects--
	}
}

// reserve counts the jobs of a new submission, or returns why it is not accepted for now.
func (l *leader) reserve(s *wire.Submission) error {
	limits := &l.c.cfg.Limits
	err := limits.CheckEffects(l.limited.effects)
	if err == nil {
		pool := s.Settings.Pool
		if pool == "" {
			pool = wire.DefaultPool
		}
		err = l.limited.quota.Reserve(s.Key, quota.Job{User: s.Owner, Pool: pool}, len(s.Plan.Jobs))
	}
	var e *quota.Exceeded
	if errors.As(err, &e) {
		return exceeded(e)
	}
	return err
}

// exceeded makes the answer to a request that exceeds a limit. A submission that can never be
// accepted is a bad one.
func exceeded(e *quota.Exceeded) error {
	if e.More > e.Max {
		return fmt.Errorf("%w: %w", admission.ErrBadSubmission, e)
	}
	return &admission.Busy{Reason: e, Limit: e.Limit, Max: e.Max}
}

// reserveMove counts the jobs of a submission in the pool to which a change moves them, until the change
// is applied, or returns why they cannot move. That is no Busy: clients wait in silence after that, and
// the pool may stay full for long.
func (l *leader) reserveMove(r Change) error {
	s := l.facts.Find(r.Job).Submission()
	if r.Pool == nil || cmp.Or(*r.Pool, wire.DefaultPool) == poolName(s) {
		return nil
	}
	open := 0
	for j := range l.facts.Flow(s) {
		if !j.Ended() {
			open++
		}
	}
	var e *quota.Exceeded
	if errors.As(l.limited.quota.ReserveMove(s.Key(), cmp.Or(*r.Pool, wire.DefaultPool), open), &e) {
		return fmt.Errorf("%w: %w", admission.ErrBadSettings, e)
	}
	return nil
}

// mayBegin reports whether a job may be set up. If not, it waits in line.
func (l *leader) mayBegin(j *job) bool {
	q, n := l.limited.quota, j.facts.N()
	switch {
	case j.recovering: // a setup attempt may run
		return false
	case l.c.cfg.Limits.Begun == quota.Bound{}, j.service.setup.runs():
		q.Begin(n)
	case !q.Begun(n):
		q.Wait(n)
	}
	return q.Begun(n)
}

// beginJobs sets up jobs that wait in line, as far as the limits allow.
func (l *leader) beginJobs() {
	for {
		n, ok := l.limited.quota.Next()
		if !ok {
			return
		}
		if j := l.jobs[n]; j != nil {
			l.touch(j)
		}
	}
}

// mayRunSetup reports whether another setup attempt may run.
func (l *leader) mayRunSetup() bool {
	limit := l.c.cfg.Limits.Setups
	return limit == 0 || l.limited.setups < limit
}

// limitsInUse lists the limits on numbers of jobs, setups and effects.
func (l *leader) limitsInUse() []wire.LimitStatus {
	var all []wire.LimitStatus
	for _, u := range l.limited.quota.Uses() {
		all = append(all, wire.LimitStatus{Name: u.Limit, Of: u.Of, Used: u.Have, Max: u.Max})
	}
	limits := &l.c.cfg.Limits
	if limits.Setups > 0 {
		all = append(all, wire.LimitStatus{Name: "setups", Used: l.limited.setups, Max: limits.Setups})
	}
	if limits.TrackerSetups > 0 {
		var fullest *tracker
		for _, t := range l.fleet.trackers { // any order: the maximum by name is unique
			if n := t.services.setups; fullest == nil || n > fullest.services.setups || n == fullest.services.setups && t.Name < fullest.Name {
				fullest = t
			}
		}
		x := wire.LimitStatus{Name: "tracker-setups", Max: limits.TrackerSetups}
		if fullest != nil && fullest.services.setups > 0 {
			x.Of, x.Used = "task tracker "+fullest.Name, fullest.services.setups
		}
		all = append(all, x)
	}
	if limits.Effects > 0 {
		all = append(all, wire.LimitStatus{Name: "effects", Used: l.limited.effects, Max: limits.Effects})
	}
	return all
}

// expireLifetime stops a job that has reached the longest lifetime. It reports whether it did.
func (l *leader) expireLifetime(j *job) bool {
	most := l.c.cfg.Limits.Maximum.Lifetime
	if most == 0 || j.recovering || j.finish.stopProposed || l.now-j.spec.arrived < most || j.facts.Committing() || j.facts.Stopping() {
		return false
	}
	l.stopJob(j, wire.Failed, fmt.Sprintf("it was submitted %v ago and has not ended: the cluster's administrator allows at most %v (job-lifetime)", (l.now-j.spec.arrived).Round(time.Second), most))
	return true
}
