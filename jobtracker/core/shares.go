package core

import (
	"github.com/quernmr/quern/jobtracker/core/shares"
	"github.com/quernmr/quern/wire"
)

// shuffleShares is how jobs share the network of the homes, as trackers were told.
type shuffleShares struct {
	announced shares.List
	seq       uint64 // of the last plan that sendShares has seen
}

// sendShares sends the current plan's shares to trackers with homes, if they changed or the
// tracker may have missed them.
func (l *leader) sendShares() {
	if p := &l.phases[mapPhase]; !p.planning && p.seq != l.shares.seq {
		l.shares.seq = p.seq
		l.updateShares()
	}
	told := &l.shares.announced
	for i := range told.TakeStale() {
		t := l.fleet.byIndex[i]
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.sharesVersion != told.Version() {
			t.sharesVersion = told.Version()
			l.send(t, &wire.Shares{Epoch: l.epoch, Shares: told.List()})
		}
	}
}

// updateShares takes over the shares of the current plan, if the change matters.
func (l *leader) updateShares() {
	told := &l.shares.announced
	list, had := make([]wire.JobShare, 0, shares.MaxJobs), told.List()
	for _, p := range l.phases[mapPhase].plan.Portions {
		if j := l.job(p.Job); j != nil && j.facts.Running() && len(list) < shares.MaxJobs {
			list = append(list, wire.JobShare{Job: p.Job, Share: p.Share})
		}
	}
	if !told.Update(list, l.now, l.c.cfg.PlanPeriod) {
		return
	}
	l.recordShares(had, list)
	for i, t := range l.fleet.byIndex {
		if t != nil {
			told.MarkStale(i)
		}
	}
}

// noteShares notes the change in the plan logs of jobs that have a share now or had one before.
func (l *leader) recordShares(had, list []wire.JobShare) {
	for _, s := range had {
		if j := l.job(s.Job); j != nil {
			j.planned.shuffleTurn, j.planned.shuffleShare = 0, 0
		}
	}
	for i, s := range list {
		if j := l.job(s.Job); j != nil {
			j.planned.shuffleTurn, j.planned.shuffleShare = i+1, s.Share
			l.recordShare(j)
		}
	}
	for _, s := range had {
		if j := l.job(s.Job); j != nil && j.planned.shuffleTurn == 0 {
			l.recordShare(j)
		}
	}
}

// queueShares has sendShares send the shares to a tracker that has a new home or a new stream.
func (l *leader) queueShares(t *tracker) { l.shares.announced.MarkStale(t.assign.Index()) }

// resendShares handles a new stream: messages on the earlier one may be lost.
func (l *leader) resendShares(t *tracker) {
	if t.sharesVersion > 1 {
		t.sharesVersion = 0
	}
	l.queueShares(t)
}

// maxFetchRate is the maximum plausible fetch rate of a tracker, in bytes a second.
const maxFetchRate = 1e15
