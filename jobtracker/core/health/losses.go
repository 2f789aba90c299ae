package health

import (
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Losses keeps the last maxLosses losses, each for lossLifetime.
const (
	maxLosses    = 100
	lossLifetime = 24 * time.Hour
)

// Losses lists the lost trackers that have not registered again, oldest first, for display. It is
// not replicated: a new leader starts with an empty list.
type Losses []loss

type loss struct {
	wire.LostTracker
	at time.Duration
}

// Add records the loss of a tracker.
func (l *Losses) Add(x wire.LostTracker, now time.Duration) {
	l.Remove(x.Tracker)
	*l = append(*l, loss{x, now})
	*l = (*l)[max(0, len(*l)-maxLosses):]
}

// Remove removes a tracker that has registered again.
func (l *Losses) Remove(tracker string) {
	*l = slices.DeleteFunc(*l, func(x loss) bool { return x.Tracker == tracker })
}

// Current lists the losses to display at a time, by tracker name.
func (l Losses) Current(now time.Duration) (list []wire.LostTracker) {
	for _, x := range l {
		if now-x.at < lossLifetime {
			list = append(list, x.LostTracker)
		}
	}
	slices.SortFunc(list, func(a, b wire.LostTracker) int { return strings.Compare(a.Tracker, b.Tracker) })
	return list
}
