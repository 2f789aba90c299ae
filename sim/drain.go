package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// How long trackers that drain serve what they have, which is short, so that the storms
// reach all that then comes.
const (
	drainServes = 3 * time.Second
	drainLasts  = 9 * time.Second
)

// drain has a tracker drain for a while, at the latest until the storm is over.
func (w *world) drain(name string, how time.Duration) {
	undone, asked := false, false
	undo := func() {
		if undone = true; asked {
			w.undrain(name)
		}
	}
	w.askDrain(name, false, func() {
		if asked = true; undone {
			w.undrain(name)
		}
	})
	once := func() {
		if !undone {
			undo()
		}
	}
	w.after(how, once)
	w.heals = append(w.heals, once)
}

func (w *world) undrain(name string) { w.askDrain(name, true, func() {}) }

// askDrain asks until there is an answer. That nobody knows the tracker is one: it has
// never registered, or is lost and does not drain.
func (w *world) askDrain(name string, undo bool, done func()) {
	w.draining++
	(&client{w: w}).ask(func(t core.Token) core.Event { return core.Drain{Token: t, Tracker: name, Undo: undo} }, func(r core.Reply) {
		w.draining--
		w.note("drain %s, undone %v, is answered %v", name, undo, r.Err)
		if r.Err != nil && !errors.Is(r.Err, core.ErrUnknownTracker) {
			w.fail("V15: drain %s, undone %v, is refused: %v", name, undo, r.Err)
		}
		done()
	})
}

// leave ends a tracker that is drained; it is started again, and gets nothing as long
// as it is to drain.
func (t *taskTracker) leave() {
	t.w.note("%s has drained and leaves", t.name)
	t.crash(t.w.upTo(5 * time.Second))
}

// checkDrain looks at what a leader sends to a tracker that drains, by what it knows.
func (b *book) checkDrain(w *world, n *jobTracker, l *link, m wire.Message) {
	var what string
	switch m := m.(type) {
	case *wire.Launch:
		what = m.Attempt.String()
	case *wire.SetHome:
		home := fmt.Sprintf("home %v/%d %v of %s", m.Job, m.Partition, m.Generation, l.tt.name)
		if b.homes[home] {
			return // said again on another stream
		}
		b.homes[home], what = true, home
	default:
		return
	}
	for _, d := range n.core.Cluster(n.clock()).Drains {
		if d.Tracker == l.tt.name {
			w.fail("V15: %s gives %s to %s, which drains", n.name, what, l.tt.name)
		}
	}
}

// letGo looks at a tracker that is told that it is drained.
func (b *book) letGo(w *world, t *taskTracker) {
	if len(t.open) > 0 {
		w.fail("V15: %s is let go and runs %v", t.name, sortedAttempts(t.open))
	}
}
