package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Short times for draining trackers, so that a run also has the time after them.
const (
	drainServes = 3 * time.Second
	drainLasts  = 9 * time.Second
)

// drain drains a tracker for a while, at most until the end of the storm.
func (w *world) drain(name string, d time.Duration) {
	over, answered := false, false
	w.requestDrain(name, false, func() {
		if answered = true; over {
			w.undrain(name)
		}
	})
	end := func() {
		if over {
			return
		}
		if over = true; answered {
			w.undrain(name)
		}
	}
	w.after(d, end)
	w.heals = append(w.heals, end)
}

func (w *world) undrain(name string) { w.requestDrain(name, true, func() {}) }

// requestDrain sends the request until there is an answer. "Unknown tracker" is an answer too:
// the tracker has never registered, or is lost and does not drain.
func (w *world) requestDrain(name string, undo bool, done func()) {
	w.pendingDrains++
	(&client{w: w}).request(func(t core.Token) core.Event { return core.Drain{Token: t, Tracker: name, Undo: undo} }, func(r core.Reply) {
		w.pendingDrains--
		w.note("drain %s, undone %v, is answered %v", name, undo, r.Err)
		if r.Err != nil && !errors.Is(r.Err, core.ErrUnknownTracker) {
			w.fail("V15: drain %s, undone %v, is refused: %v", name, undo, r.Err)
		}
		done()
	})
}

// leave ends the process of a drained tracker. A new process starts, and gets nothing until the
// drain is undone.
func (t *taskTracker) leave() {
	t.w.note("%s has drained and leaves", t.name)
	t.crash(t.w.upTo(5 * time.Second))
}

// checkDrain checks that a leader gives no work to a tracker that drains, as far as the leader
// knows.
func (b *book) checkDrain(w *world, n *jobTracker, l *link, m wire.Message) {
	if !w.shape.administered {
		return
	}
	var given string
	switch m := m.(type) {
	case *wire.Launch:
		given = m.Attempt.String()
	case *wire.SetHome:
		home := fmt.Sprintf("home %v/%d %v of %s", m.Job, m.Partition, m.Generation, l.tt.name)
		if b.homes[home] {
			return // sent again on another stream
		}
		b.homes[home], given = true, home
	default:
		return
	}
	for _, d := range n.core.Cluster(n.clock()).Drains {
		if d.Tracker == l.tt.name {
			w.fail("V15: %s gives %s to %s, which drains", n.name, given, l.tt.name)
		}
	}
}

// checkDrained checks that a tracker runs nothing when the leader says that it has drained.
func (b *book) checkDrained(w *world, t *taskTracker) {
	if len(t.open) > 0 {
		w.fail("V15: %s has drained and runs %v", t.name, sortedAttempts(t.open))
	}
}
