package announce

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// The limit of messages to a tracker: Burst at once, and PerTick more in each Tick. So a tracker
// gets at most Burst + (time.Second/Tick + 1) · PerTick = 58 messages in any second.
const (
	Tick    = 50 * time.Millisecond
	PerTick = 2
	Burst   = 16
)

// Line has the readers of a tracker that wait. Its zero value is empty, with all tokens.
type Line struct {
	waiting []*Reader
	used    int           // tokens
	tick    time.Duration // number of the last Tick for which tokens were added
}

// Add adds a reader that has something to get, unless it waits already.
func (x *Line) Add(r *Reader) {
	if !r.waiting {
		r.waiting = true
		x.waiting = append(x.waiting, r)
	}
}

// Len returns the number of readers that wait.
func (x *Line) Len() int { return len(x.waiting) }

// Clear removes all readers. They get nothing before they are added again.
func (x *Line) Clear() {
	for _, r := range x.waiting {
		r.waiting = false
	}
	x.waiting = nil
}

// Take takes the lists for one message, of one reader after the other, until it has wire.OutputsPage
// outputs or more. It has less than twice as many. Without a token, ok is false. encoded counts the outputs
// that had to be encoded for it.
func (x *Line) Take(now time.Duration) (lists []wire.OutputList, encoded int, ok bool) {
	tick := now / Tick
	x.used = int(max(0, time.Duration(x.used)-PerTick*(tick-x.tick)))
	x.tick = tick
	if x.used >= Burst {
		return nil, 0, false
	}
	for n := 0; len(x.waiting) > 0 && n < wire.OutputsPage; {
		r := x.waiting[0]
		x.waiting[0] = nil
		x.waiting = x.waiting[1:]
		r.waiting = false
		if !r.Pending() {
			continue
		}
		before := r.log.encoded
		list := r.next()
		encoded += r.log.encoded - before
		if r.Pending() {
			x.Add(r)
		}
		if list.N > 0 {
			lists = append(lists, list)
			n += list.N
		}
	}
	if len(lists) > 0 {
		x.used++
	}
	return lists, encoded, true
}

// NextTick returns the beginning of the Tick after a time, in which lines get tokens.
func NextTick(now time.Duration) time.Duration { return (now/Tick + 1) * Tick }
