package core

import (
	"github.com/quernmr/quern/jobtracker/core/shares"
	"github.com/quernmr/quern/wire"
)

// portions is what trackers are told of how jobs share what the homes fetch.
type portions struct {
	told shares.List
	seq  uint64 // of the plan that was looked at last
}

// tellShares tells trackers with homes what the current plan has changed, and those
// that have been without what they missed.
func (l *Live) tellShares() {
	if p := &l.phases[mapPhase]; !p.asked && p.seq != l.parts.seq {
		l.parts.seq = p.seq
		l.reshare()
	}
	told := &l.parts.told
	for i := range told.TakeStale() {
		t := l.fleet.byIndex[i]
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.shares != told.Version() {
			t.shares = told.Version()
			l.send(t, &wire.Shares{Epoch: l.epoch, Shares: told.List()})
		}
	}
}

// reshare has the shares of the plan told, if they matter.
func (l *Live) reshare() {
	told := &l.parts.told
	list, had := make([]wire.JobShare, 0, shares.MaxJobs), told.List()
	for _, p := range l.phases[mapPhase].plan.Portions {
		if j := l.job(p.Job); j != nil && j.facts.Running() && len(list) < shares.MaxJobs {
			list = append(list, wire.JobShare{Job: p.Job, Share: p.Share})
		}
	}
	if !told.Update(list, l.now, l.c.cfg.Period) {
		return
	}
	l.noteShares(had, list)
	for i, t := range l.fleet.byIndex {
		if t != nil {
			told.MarkStale(i)
		}
	}
}

// noteShares notes what changes for those who have a share told, and who have none any more.
func (l *Live) noteShares(had, list []wire.JobShare) {
	for _, s := range had {
		if j := l.job(s.Job); j != nil {
			j.planned.turn, j.planned.share = 0, 0
		}
	}
	for i, s := range list {
		if j := l.job(s.Job); j != nil {
			j.planned.turn, j.planned.share = i+1, s.Share
			l.noteShare(j)
		}
	}
	for _, s := range had {
		if j := l.job(s.Job); j != nil && j.planned.turn == 0 {
			l.noteShare(j)
		}
	}
}

// oweShares has a tracker told that has a home, or may have missed what it was told.
func (l *Live) oweShares(t *tracker) { l.parts.told.MarkStale(t.assign.Index()) }

// sharesLost is for a new stream: what was sent on the one before may be lost.
func (l *Live) sharesLost(t *tracker) {
	if t.shares > 1 {
		t.shares = 0
	}
	l.oweShares(t)
}

// maxRate is what is believed of how many bytes a second a tracker fetches.
const maxRate = 1e15
