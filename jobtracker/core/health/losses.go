package health

import (
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// The latest losses are kept, for a day.
const (
	maxLosses    = 100
	lossLifetime = 24 * time.Hour
)

// Losses is the trackers that were lost and are not back, oldest first, for display. That is
// the leader's alone; the next one knows of those that it loses.
type Losses []loss

type loss struct {
	wire.LostTracker
	at time.Duration
}

// Add notes that a tracker was lost.
func (l *Losses) Add(x wire.LostTracker, now time.Duration) {
	l.Back(x.Tracker)
	*l = append(*l, loss{x, now})
	*l = (*l)[max(0, len(*l)-maxLosses):]
}

// Back forgets that a tracker was lost.
func (l *Losses) Back(tracker string) {
	*l = slices.DeleteFunc(*l, func(x loss) bool { return x.Tracker == tracker })
}

// At is those that are worth telling of at a time, by name.
func (l Losses) At(now time.Duration) (list []wire.LostTracker) {
	for _, x := range l {
		if now-x.at < lossLifetime {
			list = append(list, x.LostTracker)
		}
	}
	slices.SortFunc(list, func(a, b wire.LostTracker) int { return strings.Compare(a.Tracker, b.Tracker) })
	return list
}
