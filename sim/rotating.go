package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// In runs with faults that rotate, a task tracker has a fault for some time and heals, and then another
// one has a fault. Exclusions last much longer than that.
const (
	rotatingTime     = 3 * time.Minute // from the first fault to the end of the last one
	shortestRotating = 20 * time.Second
	longestRotating  = time.Minute
	rotatingPause    = 10 * time.Second // at most, from the end of a fault to the next one
	rotatingClients  = 12
)

// rotatingKinds lists the kinds of faults that rotate. Each can heal.
func rotatingKinds() []Kind {
	return []Kind{Sick, SickMaps, SickReduces, CutTrackers, RefuseFetches, StallFetches, SlowProcessor, FullDisks, RefusedCalls, Pause}
}

// drawRotating draws the number of task trackers of a run, and faults that rotate. At any time at
// most half of the task trackers have one.
func drawRotating(seed uint64) (trackers int, faults []Fault) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	trackers = 4 + rnd.IntN(lastingTrackers-3)
	next := make([]time.Duration, trackers/2) // when each of the faults at once is followed by another
	for i := range next {
		next[i] = time.Duration(rnd.Int64N(int64(rotatingPause)))
	}
	healthy := make([]time.Duration, trackers) // since when each task tracker is
	var deck []Kind                            // each kind has its turn
	for {
		seat := slices.Index(next, slices.Min(next))
		f := Fault{At: next[seat], For: shortestRotating + time.Duration(rnd.Int64N(int64(longestRotating-shortestRotating)))}
		if f.At+f.For > rotatingTime {
			return trackers, faults
		}
		n := rnd.IntN(trackers)
		for healthy[n] > f.At {
			n = (n + 1) % trackers
		}
		if len(deck) == 0 {
			deck = rotatingKinds()
			rnd.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
		}
		f.Kind, f.Node, deck = deck[0], taskTrackerName(n), deck[1:]
		if f.Kind == SlowProcessor {
			f.Factor = 10
		}
		faults = append(faults, f)
		healthy[n] = f.At + f.For
		next[seat] = healthy[n] + time.Duration(rnd.Int64N(int64(rotatingPause)))
	}
}
