package health

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFetches has one case for each fault, and for what no longer counts.
func TestFetches(t *testing.T) {
	for _, c := range []struct {
		name   string
		fails  []string // "fetcher server [reached]", a second after each other; "forget tracker"; "wait"
		all    int
		at     Fault
		reason string
	}{
		{"one fetch", []string{"a b"}, 4, FaultUnclear, ""},
		{"the same fetch again", []string{"a b", "a b", "a b"}, 4, FaultUnclear, ""},
		{"two trackers cannot fetch from each other", []string{"a b", "b a"}, 2, FaultUnclear, ""},
		{"a fetcher that fails more often", []string{"a b", "a c"}, 4, FaultHome, ""},
		{"a fetcher that fails at most", []string{"a b", "a c", "a d"}, 4, FaultFetcher, "it could not fetch map outputs from 3 of the 3 other task trackers"},
		{"two of four fail at one", []string{"a d", "b d"}, 4, FaultUnclear, ""},
		{"a server at which most fail", []string{"a d", "b d", "c d"}, 4, FaultUnread, "3 of the 3 other task trackers could not fetch map outputs from it"},
		{"a fetcher that reaches half of all, with itself", []string{"a d 1"}, 4, FaultServer, "task tracker a could not fetch map outputs from it, but from 1 others"},
		{"a fetcher that reaches less", []string{"a d 1"}, 5, FaultUnclear, ""},
		{"a fetcher alone", []string{"a b 0"}, 2, FaultUnclear, ""},
		{"a fetcher that fails as often as it succeeds, with itself", []string{"a b", "a c 1"}, 5, FaultUnclear, ""},
		{"a fetcher that fails more often than it succeeds", []string{"a b", "a c", "a d 1"}, 7, FaultHome, ""},
		{"a fetcher that reaches half and fails at most", []string{"a b", "a c", "a d 3"}, 5, FaultFetcher, "it could not fetch map outputs from 3 of the 4 other task trackers"},
		{"both fail more often", []string{"b c", "a d", "a c"}, 5, FaultUnclear, ""},
		{"other servers are forgotten", []string{"a b", "a c", "forget b", "forget c", "a d"}, 4, FaultUnclear, ""},
		{"the fetcher is forgotten", []string{"a b", "a c", "forget a", "a d"}, 4, FaultUnclear, ""},
		{"earlier failures no longer count", []string{"a d", "b d", "wait", "c d"}, 4, FaultUnclear, ""},
	} {
		var f Fetches
		var now time.Duration
		var at Fault
		var reason string
		for _, text := range c.fails {
			now += time.Second
			var x, y string
			reached := 0
			switch fmt.Sscan(text, &x, &y, &reached); x {
			case "forget":
				f.Forget(y)
			case "wait":
				now += fetchMemory
			default:
				at, reason = f.Fail(x, y, reached, c.all, now)
			}
		}
		if at != c.at || reason != c.reason {
			t.Errorf("%s: fault %v, reason %q; want %v, %q", c.name, at, reason, c.at, c.reason)
		}
	}
}

// TestFetchesModel compares Fetches with a list of all failures, and checks its invariant.
func TestFetchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type failure struct {
			by, from string
			at       time.Duration
		}
		all := rapid.IntRange(2, 8).Draw(t, "trackers")
		name := func(i int) string { return string(rune('a' + i)) }
		bad := rapid.IntRange(1, all).Draw(t, "bad") // the first ones
		var f Fetches
		var failures []failure
		var now time.Duration
		for range 60 {
			now += time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second
			by, from := rapid.IntRange(0, all-1).Draw(t, "by"), rapid.IntRange(0, all-1).Draw(t, "from")
			if by == from || by >= bad && from >= bad {
				f.Forget(name(by))
				var kept []failure
				for _, x := range failures {
					if x.by != name(by) && x.from != name(by) {
						kept = append(kept, x)
					}
				}
				failures = kept
				continue
			}
			failures = append(failures, failure{name(by), name(from), now})
			servers, fetchers := make(map[string]bool), make(map[string]bool)
			for _, x := range failures {
				if x.by == name(by) && now-x.at <= fetchMemory {
					servers[x.from] = true
				}
				if x.from == name(from) && now-x.at <= fetchMemory {
					fetchers[x.by] = true
				}
			}
			want, reached := FaultUnclear, rapid.IntRange(0, all-2).Draw(t, "reached")
			if by < bad {
				reached = min(reached, bad-1)
			}
			switch {
			case len(servers) > all/2:
				want = FaultFetcher
			case len(fetchers) > all/2:
				want = FaultUnread
			case reached > 0 && reached+1 >= all-all/2:
				want = FaultServer
			case len(servers) > max(len(fetchers), reached+1):
				want = FaultHome
			}
			at, reason := f.Fail(name(by), name(from), reached, all, now)
			if at != want || (reason != "") != (at == FaultFetcher || at == FaultServer || at == FaultUnread) {
				t.Fatalf("%s cannot fetch from %s: fault %v, reason %q, want %v", name(by), name(from), at, reason, want)
			}
			if 2*bad < all && (at == FaultFetcher && by >= bad || at >= FaultServer && from >= bad) {
				t.Fatalf("%s cannot fetch from %s, the first %d of %d trackers are bad: fault %v", name(by), name(from), bad, all, at)
			}
		}
	})
}
