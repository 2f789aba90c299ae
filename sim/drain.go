package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Short times for draining trackers, so that a run reaches what comes after.
const (
	drainServes = 3 * time.Second
	drainLasts  = 9 * time.Second
)

// drain drains a tracker for a while, at most until the end of the storm.
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

// askDrain asks until there is an answer. "Unknown tracker" is one too: the tracker has never
// registered, or is lost and does not drain.
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

// leave ends a drained tracker. It starts again, and gets nothing while it is to drain.
func (t *taskTracker) leave() {
	t.w.note("%s has drained and leaves", t.name)
	t.crash(t.w.upTo(5 * time.Second))
}

// checkDrain checks a leader's message to a tracker that drains as far as the leader knows.
func (b *book) checkDrain(w *world, n *jobTracker, l *link, m wire.Message) {
	var what string
	switch m := m.(type) {
	case *wire.Launch:
		what = m.Attempt.String()
	case *wire.SetHome:
		home := fmt.Sprintf("home %v/%d %v of %s", m.Job, m.Partition, m.Generation, l.tt.name)
		if b.homes[home] {
			return // sent again on another stream
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

// drained checks a tracker that is told that it has drained.
func (b *book) drained(w *world, t *taskTracker) {
	if len(t.open) > 0 {
		w.fail("V15: %s has drained and runs %v", t.name, sortedAttempts(t.open))
	}
}
