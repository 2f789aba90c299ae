package health

import (
	"fmt"
	"time"
)

// fetchMemory is how long a failed fetch counts. Trackers repeat failing fetches more often.
const fetchMemory = 2 * time.Minute

// Fetches decides whether the tracker that fetches or the tracker that serves is at fault if
// fetches fail. The zero Fetches knows of no failure.
//
// Invariant: if at most half of the trackers are at fault, no other tracker is blamed. A good
// tracker fails to fetch only from bad ones, and only bad ones fail to fetch from it.
type Fetches struct{ failed map[fetch]time.Duration } // time of the last failure

type fetch struct{ by, from string }

// Fault says which tracker is at fault if fetches between two fail.
type Fault uint8

const (
	FaultOutput  Fault = iota // unclear: the output counts as lost
	FaultHome                 // it fails to fetch from more trackers than fail to fetch from that one
	FaultFetcher              // it failed to fetch from more than half of all trackers
	FaultServer               // more than half of all trackers failed to fetch from it
)

// Fail records that one tracker could not fetch from another, and judges them. all is the number
// of trackers. The reason of FaultFetcher and FaultServer is for operators. O(failed fetches).
func (f *Fetches) Fail(by, from string, all int, now time.Duration) (at Fault, reason string) {
	if f.failed == nil {
		f.failed = make(map[fetch]time.Duration)
	}
	f.failed[fetch{by, from}] = now
	servers, fetchers := 0, 0
	for x, last := range f.failed {
		switch {
		case now-last > fetchMemory:
			delete(f.failed, x)
			continue
		case x.by == by:
			servers++
		case x.from == from:
			fetchers++
		}
	}
	fetchers++ // by itself
	switch {
	case 2*servers > all:
		return FaultFetcher, fmt.Sprintf("it could not fetch map outputs from %d of the %d other task trackers", servers, all-1)
	case 2*fetchers > all:
		return FaultServer, fmt.Sprintf("%d of the %d other task trackers could not fetch map outputs from it", fetchers, all-1)
	case all == 2 && f.both(by, from):
		// Each of the only two trackers cannot fetch from the other, and can run all jobs alone.
		if by > from {
			return FaultFetcher, "it and the only other task tracker could not fetch map outputs from each other"
		}
		return FaultServer, "it and the only other task tracker could not fetch map outputs from each other"
	case servers > fetchers:
		return FaultHome, ""
	}
	return FaultOutput, ""
}

// Forget drops what is known about a tracker that is lost or excluded.
func (f *Fetches) Forget(tracker string) {
	for x := range f.failed {
		if x.by == tracker || x.from == tracker {
			delete(f.failed, x)
		}
	}
}

// both reports whether each of two trackers could not fetch from the other.
func (f *Fetches) both(a, b string) bool {
	_, there := f.failed[fetch{a, b}]
	_, back := f.failed[fetch{b, a}]
	return there && back
}
