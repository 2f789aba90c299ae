package health

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// fetchMemory is how long a failed fetch counts. Trackers repeat failing fetches more often.
const fetchMemory = 2 * time.Minute

// Fetches decides whether the tracker that fetches or the tracker that serves is at fault if
// fetches fail. The zero Fetches knows of no failure.
//
// Invariant: if less than half of the trackers are at fault, and these do not reach half of all, no
// other tracker is excluded. A good tracker fails to fetch only from bad ones, and only bad ones fail
// to fetch from it. If the network splits the trackers into halves, each half blames the other. Then
// the first exclusion decides, since the excluded one's half does not reach half of all in service.
type Fetches struct {
	by, from peers // the same failures, by the tracker that fetches and by the one that serves
}

// peers has the times of the last failures between a tracker and others.
type peers map[string]map[string]time.Duration

// Fault says which tracker is at fault if fetches between two fail.
type Fault uint8

const (
	FaultUnclear Fault = iota
	FaultHome          // the fetcher, for now: it fails at more trackers than it reaches, and than fail at the server
	FaultFetcher       // the fetcher: it fails at more than half of all trackers
	FaultServer        // the server: the fetcher reaches half of all trackers
	FaultUnread        // the server: more than half of all trackers fail at it
)

// Fail records that one tracker could not fetch from another, and judges them. Meanwhile the tracker
// reached others: the number of those in service. all is the number of trackers. All but
// FaultUnclear and FaultHome come with a reason to exclude the tracker.
func (f *Fetches) Fail(by, from string, reached, all int, now time.Duration) (at Fault, reason string) {
	f.by, f.from = f.by.add(by, from, now), f.from.add(from, by, now)
	servers, fetchers := f.by.count(by, now), f.from.count(from, now)
	switch {
	case 2*servers > all:
		return FaultFetcher, fmt.Sprintf("it could not fetch map outputs from %d of the %d other task trackers", servers, all-1)
	case 2*fetchers > all:
		return FaultUnread, fmt.Sprintf("%d of the %d other task trackers could not fetch map outputs from it", fetchers, all-1)
	case reached > 0 && 2*(reached+1) >= all:
		return FaultServer, fmt.Sprintf("task tracker %s could not fetch map outputs from it, but from %d others", by, reached)
	case servers > fetchers && servers > reached+1:
		return FaultHome, ""
	}
	return FaultUnclear, ""
}

// Unreached lists the trackers from which one could not fetch lately.
func (f *Fetches) Unreached(by string) []string { return slices.Sorted(maps.Keys(f.by[by])) }

// MayExclude reports whether enough trackers remain without the one that is at fault.
func (f *Fetches) MayExclude(others Others) bool { return others.enoughRemain() }

// Forget drops what is known about a tracker that is lost or excluded.
func (f *Fetches) Forget(tracker string) {
	f.by.remove(tracker, f.from)
	f.from.remove(tracker, f.by)
}

func (p peers) add(tracker, peer string, now time.Duration) peers {
	if p == nil {
		p = make(peers)
	}
	if p[tracker] == nil {
		p[tracker] = make(map[string]time.Duration)
	}
	p[tracker][peer] = now
	return p
}

// count counts the peers of a tracker, and drops those that no longer count.
func (p peers) count(tracker string, now time.Duration) int {
	for peer, last := range p[tracker] {
		if now-last > fetchMemory {
			delete(p[tracker], peer)
		}
	}
	return len(p[tracker])
}

// remove removes a tracker, here and among the peers of others.
func (p peers) remove(tracker string, others peers) {
	for peer := range p[tracker] {
		delete(others[peer], tracker)
	}
	delete(p, tracker)
}
