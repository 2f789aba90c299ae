package core

import (
	"github.com/quernmr/quern/jobtracker/core/shares"
	"github.com/quernmr/quern/wire"
)

// portions is what trackers are told of how jobs share what the homes fetch.
type shuffleShares struct {
	announced shares.Told
	seq       uint64 // of the plan that was looked at last
}

// tellShares tells trackers with homes what the current plan has changed, and those
// that have been without what they missed.
func (l *Live) sendShares() {
	if p := &l.phases[mapPhase]; !p.planning && p.seq != l.shares.seq {
		l.shares.seq = p.seq
		l.updateShares()
	}
	told := &l.shares.announced
	for i := range told.Owed() {
		t := l.fleet.byIndex[i]
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.sharesVersion != told.Version() {
			t.sharesVersion = told.Version()
			l.send(t, &wire.Shares{Epoch: l.epoch, Shares: told.List()})
		}
	}
}

// reshare has the shares of the plan told, if they matter.
func (l *Live) updateShares() {
	told := &l.shares.announced
	list, had := make([]wire.JobShare, 0, shares.Most), told.List()
	for _, p := range l.phases[mapPhase].plan.Portions {
		if j := l.job(p.Job); j != nil && j.facts.Running() && len(list) < shares.Most {
			list = append(list, wire.JobShare{Job: p.Job, Share: p.Share})
		}
	}
	if !told.Update(list, l.now, l.c.cfg.Period) {
		return
	}
	l.noteShares(had, list)
	for i, t := range l.fleet.byIndex {
		if t != nil {
			told.Owe(i)
		}
	}
}

// noteShares notes what changes for those who have a share told, and who have none any more.
func (l *Live) noteShares(had, list []wire.JobShare) {
	for _, s := range had {
		if j := l.job(s.Job); j != nil {
			j.planned.shuffleTurn, j.planned.shuffleShare = 0, 0
		}
	}
	for i, s := range list {
		if j := l.job(s.Job); j != nil {
			j.planned.shuffleTurn, j.planned.shuffleShare = i+1, s.Share
			l.noteShare(j)
		}
	}
	for _, s := range had {
		if j := l.job(s.Job); j != nil && j.planned.shuffleTurn == 0 {
			l.noteShare(j)
		}
	}
}

// oweShares has a tracker told that has a home, or may have missed what it was told.
func (l *Live) queueShares(t *tracker) { l.shares.announced.Owe(t.assign.Index()) }

// sharesLost is for a new stream: what was sent on the one before may be lost.
func (l *Live) resendShares(t *tracker) {
	if t.sharesVersion > 1 {
		t.sharesVersion = 0
	}
	l.queueShares(t)
}

// maxRate is what is believed of how many bytes a second a tracker fetches.
const maxFetchRate = 1e15
