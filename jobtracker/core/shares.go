package core

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// portions is what trackers are told of how jobs share what the homes fetch: the
// Portions of the plan for maps, as the last one that differed had them.
type portions struct {
	seq     uint64 // of the plan that was looked at last
	list    []wire.JobShare
	version int           // of the list; 1: none was given in this office
	at      time.Duration // when it was made
	owed    taskset.Set   // indexes of trackers that may have to be told
}

// maxShares bounds what trackers are told: jobs behind those are alike.
const maxShares = 32

// shareMatters is by how much a share must have changed for trackers to be told
// before the order changes.
const shareMatters = 0.1

// tellShares tells trackers with homes what the current plan has changed, and those
// that have been without what they missed.
func (l *Live) tellShares() {
	p, now := &l.phases[mapPhase], &l.parts
	if !p.asked && p.seq != now.seq {
		now.seq = p.seq
		l.reshare()
	}
	if now.owed.Len() == 0 {
		return
	}
	m := &wire.Shares{Epoch: l.epoch, Shares: now.list}
	for i := range now.owed.All() {
		t := l.fleet.byIndex[i]
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.shares != now.version {
			t.shares = now.version
			l.send(t, m)
		}
	}
	now.owed = taskset.Set{}
}

// reshare takes the shares of the plan over, if they matter: a new first job does at
// once, all else once a period.
func (l *Live) reshare() {
	now := &l.parts
	list := make([]wire.JobShare, 0, maxShares)
	for _, p := range l.phases[mapPhase].plan.Portions {
		if j := l.job(p.Job); j != nil && j.facts.Running() && len(list) < maxShares {
			list = append(list, wire.JobShare{Job: p.Job, Share: p.Share})
		}
	}
	soon := l.now < now.at+l.c.cfg.Period && now.version > 1
	if sameShares(now.list, list) || soon && len(list) > 0 && len(now.list) > 0 && list[0].Job == now.list[0].Job {
		return
	}
	l.noteShares(list)
	now.list, now.at = list, l.now
	now.version++
	for i, t := range l.fleet.byIndex {
		if t != nil {
			now.owed.Add(i)
		}
	}
}

// noteShares notes what changes for those who have a share told, and who have none any more.
func (l *Live) noteShares(list []wire.JobShare) {
	had := l.parts.list
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

func sameShares(a, b []wire.JobShare) bool {
	return slices.EqualFunc(a, b, func(x, y wire.JobShare) bool {
		return x.Job == y.Job && math.Abs(x.Share-y.Share) <= shareMatters
	})
}

// oweShares has a tracker told that has a home, or may have missed what it was told.
func (l *Live) oweShares(t *tracker) { l.parts.owed.Add(t.assign.Index()) }

// sharesLost is for a new stream: what was sent on the one before may be lost.
func (l *Live) sharesLost(t *tracker) {
	if t.shares > 1 {
		t.shares = 0
	}
	l.oweShares(t)
}

// maxRate is what is believed of how many bytes a second a tracker fetches.
const maxRate = 1e15
