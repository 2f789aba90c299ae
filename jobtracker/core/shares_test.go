package core

import (
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// checkShares checks that all trackers with homes got the shares in force, and no others.
func (w *world) checkShares(commands []Command) {
	l := w.core.leader
	if l == nil || w.core.halted {
		return
	}
	for _, c := range commands {
		if send, ok := c.(Send); ok {
			if m, ok := send.Message.(*wire.Shares); ok && (m.Epoch != l.epoch || !slices.Equal(m.Shares, l.shares.announced.List())) {
				w.fail("stream %d gets the shares %v of epoch %d, want %v", send.Stream, m.Shares, m.Epoch, l.shares.announced.List())
			}
		}
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() && len(t.hosting.homes) > 0 && t.sharesVersion != l.shares.announced.Version() {
			w.fail("%s has homes and got version %d of the shares, want %d", t.Name, t.sharesVersion, l.shares.announced.Version())
		}
	}
}

// drawPortions draws shuffle shares, as of a policy that plans the shuffle.
func (w *world) drawPortions(s scheduler.Snapshot) (list []scheduler.ShuffleShare) {
	if s.Phase != wire.Map || w.chance(0.3) {
		return nil
	}
	for _, j := range s.Jobs {
		if w.chance(0.7) {
			list = append(list, scheduler.ShuffleShare{Job: j.ID, Share: float64(w.rnd.IntN(2)) / float64(len(s.Jobs))})
		}
	}
	return list
}
