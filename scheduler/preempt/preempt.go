// Package preempt decides which running attempts are killed, so that pools that starve get slots.
//
// A pool starves if it has had fewer slots than its minimum, or than a fraction of its fair share,
// for longer than its timeouts; what it cannot use does not count. [Watch] keeps since when. A pool
// that starves wants its minimum, or its whole fair share. [Choose] then takes attempts of pools
// that have more than their own share. A task may request more memory or cores than one attempt
// leaves: for each missing slot it takes a set of attempts on one tracker.
//
//	P1  No pool gives more slots than it has above its share, or falls below its minimum, and none
//	    that is spared loses an attempt. One slot may cost a pool several attempts, since a large
//	    task counts as several small ones.
//	P2  Never more sets than slots are missing, and no attempt that its set could do without. Slots
//	    that are free or will be, because their attempts are being killed, come first.
//	P3  The set that loses the least work goes first: the sum of its attempts' ages. On a tracker the
//	    youngest attempts go first, ties by id.
//	P4  An attempt that nears its end stays, and so does one that cannot be killed any more.
//	P5  All sets on a tracker are for the same request: the tracker can be kept free for only one.
//
// As soon as attempts are killed for a pool, its timeouts begin again. So if the slots do not help
// it, such as slots on task trackers that its jobs do not use, it does not kill again and again.
//
// Everything here is a function of values, without clock and I/O.
package preempt

import (
	"math"
	"time"

	"github.com/quernmr/quern/scheduler/pool"
)

// Standing compares the slots of a pool with its shares.
type Standing = pool.Standing

// wants has the slots that a pool should have and does not have: its minimum, and its fair share.
type wants struct{ least, fair int }

// wantsOf returns what a pool wants now, and 0 for what it does not miss.
func wantsOf(s *Standing, even bool) (w wants) {
	x := s.Pool.Preemption
	if x == nil {
		return w
	}
	if least := min(s.Min, s.Demand); x.MinTimeout > 0 && s.Running < least {
		w.least = least
	}
	if x.FairTimeout > 0 && even && float64(s.Running) < min(x.Threshold*s.Fair, float64(s.Demand)) {
		w.fair = int(min(s.Fair, s.Share, float64(s.Demand)) + rounding)
	}
	return w
}

// rounding bounds the rounding error of shares.
const rounding = 1e-6

// Watch keeps since when pools have too few slots of a phase. Its zero value has seen nothing.
type Watch struct{ since map[string]began }

// began has the times at which a pool began to miss slots of its minimum, and of its fair share.
type began struct{ least, fair time.Duration }

const never = time.Duration(math.MaxInt64)

// Look compares the pools with their shares at a time. It returns how many slots each pool should
// have that has missed them for its timeout; 0 for the others. If the scheduler does not divide slots
// by shares, even is false, and only minima count.
func (w *Watch) Look(all []Standing, even bool, now time.Duration) []int {
	since, targets := make(map[string]began), make([]int, len(all))
	for i := range all {
		s := &all[i]
		missing := wantsOf(s, even)
		if missing == (wants{}) {
			continue
		}
		b, known := w.since[s.Pool.Name]
		if !known {
			b = began{never, never}
		}
		b.least, b.fair = sinceWhen(missing.least, b.least, now), sinceWhen(missing.fair, b.fair, now)
		since[s.Pool.Name] = b
		if missing.least > 0 && now-b.least >= s.Pool.Preemption.MinTimeout {
			targets[i] = missing.least
		}
		if missing.fair > 0 && now-b.fair >= s.Pool.Preemption.FairTimeout {
			targets[i] = max(targets[i], missing.fair)
		}
	}
	w.since = since
	return targets
}

func sinceWhen(missing int, began, now time.Duration) time.Duration {
	if missing == 0 {
		return never
	}
	return min(began, now)
}

// Restart begins the timeouts of a pool again, when attempts are killed for it.
func (w *Watch) Restart(name string) { delete(w.since, name) }

// Keep returns how many slots of a pool others may not take: its share, and its minimum.
func Keep(s *Standing) int { return max(int(math.Ceil(s.Share-rounding)), Least(s)) }

// Least returns how many slots a pool keeps in any case: its minimum, as far as it can use it.
func Least(s *Standing) int { return min(s.Min, s.Demand) }

// soon is how long a slot is worth waiting for.
const soon = time.Second

// lastPart of a task's time is too little to lose all the rest for it.
const lastPart = 10

// NearsEnd reports whether an attempt is expected to end soon: within a second, or a tenth of the
// task's time. A task that takes longer than estimated is expected to take as much time again as
// it is late, and at least that tenth.
func (a *Attempt) NearsEnd() bool {
	if a.Task <= 0 {
		return false
	}
	tenth := a.Task / lastPart
	rest := a.Task - a.Age
	if rest < 0 {
		rest = max(-rest, tenth)
	}
	return rest <= max(soon, tenth)
}
