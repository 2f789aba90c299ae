package core

import (
	"github.com/quernmr/quern/jobtracker/core/shares"
	"github.com/quernmr/quern/wire"
)

// shuffleShares is how jobs share the network when homes gather.
type shuffleShares struct {
	announced shares.List // the shares that trackers were sent
	seq       uint64      // phase.seq of the last plan that sendShares has used
}

// sendShares sends the shares of the current plan to trackers with homes that do not have them.
func (l *leader) sendShares() {
	if p := &l.phases[mapPhase]; !p.planning && p.seq != l.shares.seq {
		l.shares.seq = p.seq
		l.updateShares()
	}
	announced := &l.shares.announced
	for i := range announced.TakeStale() {
		t := l.fleet.byIndex[i]
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.sharesVersion != announced.Version() {
			t.sharesVersion = announced.Version()
			l.send(t, &wire.Shares{Epoch: l.epoch, Shares: announced.List()})
		}
	}
}

// updateShares announces the shares of the current plan, if they differ enough from the
// announced ones.
func (l *leader) updateShares() {
	announced := &l.shares.announced
	list, before := make([]wire.JobShare, 0, shares.MaxJobs), announced.List()
	for _, p := range l.phases[mapPhase].plan.ShuffleShares {
		if j := l.job(p.Job); j != nil && j.facts.Running() && len(list) < shares.MaxJobs {
			list = append(list, wire.JobShare{Job: p.Job, Share: p.Share})
		}
	}
	if !announced.Update(list, l.now, l.c.cfg.PlanPeriod) {
		return
	}
	l.recordShares(before, list)
	for i, t := range l.fleet.byIndex {
		if t != nil {
			announced.MarkStale(i)
		}
	}
}

// recordShares records the change in the plan logs of jobs that have a share now or had one.
func (l *leader) recordShares(before, list []wire.JobShare) {
	for _, s := range before {
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
	for _, s := range before {
		if j := l.job(s.Job); j != nil && j.planned.shuffleTurn == 0 {
			l.recordShare(j)
		}
	}
}

// queueShares makes sendShares send the shares to a tracker that has a new home or a new stream.
func (l *leader) queueShares(t *tracker) { l.shares.announced.MarkStale(t.assign.Index()) }

// resendShares makes sendShares send the shares on a new stream: they may be lost with the
// earlier one.
func (l *leader) resendShares(t *tracker) {
	if t.sharesVersion > 1 {
		t.sharesVersion = 0
	}
	l.queueShares(t)
}

// maxFetchRate is the maximum plausible fetch rate of a tracker, in bytes a second.
const maxFetchRate = 1e15
