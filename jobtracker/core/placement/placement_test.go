package placement

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/locality"
)

// TestSites compares the heap with a search of all sites, for each partition.
func TestSites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "trackers")
		sites := make([]Site, n)
		for i := range sites {
			sites[i] = Site{
				Tracker: i, JobLoad: float64(rapid.IntRange(1, 3).Draw(t, "own")), Rank: rapid.IntRange(0, 2).Draw(t, "rank"),
				Load: float64(rapid.IntRange(0, 3).Draw(t, "load")), Turn: i,
			}
		}
		plain := append([]Site(nil), sites...)
		s := NewSites(sites)
		for range rapid.IntRange(1, 30).Draw(t, "partitions") {
			bad := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "bad")
			i := s.Best(func(tracker int) bool { return bad[tracker] })
			want := 0
			for k := range plain {
				x, y := &plain[k], &plain[want]
				if bad[x.Tracker] == bad[y.Tracker] && x.compare(y) < 0 || !bad[x.Tracker] && bad[y.Tracker] {
					want = k
				}
			}
			if s.Tracker(i) != plain[want].Tracker {
				t.Fatalf("tracker %d, want %d of %+v, bad %v", s.Tracker(i), plain[want].Tracker, plain, bad)
			}
			x := &plain[want]
			x.JobLoad, x.Load, x.Turn = x.JobLoad+1, x.Load+1, x.Turn+n
			s.AddHome(i, x.JobLoad, x.Load, n)
		}
	})
}

func TestOrderOfSites(t *testing.T) {
	sites := []Site{ // each differs from the one before in the field that decides
		{JobLoad: 1, Rank: 9, Load: 9, Turn: 9},
		{JobLoad: 2, Rank: 1, Load: 9, Turn: 9},
		{JobLoad: 2, Rank: 2, Load: 1, Turn: 9},
		{JobLoad: 2, Rank: 2, Load: 2, Turn: 1},
		{JobLoad: 2, Rank: 2, Load: 2, Turn: 2},
	}
	for i := range sites[1:] {
		if sites[i].compare(&sites[i+1]) >= 0 {
			t.Errorf("%+v is not before %+v", sites[i], sites[i+1])
		}
	}
}

func TestMaxWait(t *testing.T) {
	const s = time.Second
	in := func(at time.Duration) func() (time.Duration, bool) {
		return func() (time.Duration, bool) { return at, true }
	}
	unknown := func() (time.Duration, bool) { return 0, false }
	for _, x := range []struct {
		name string
		w    WaitInput
		want time.Duration
	}{
		{"none: as long as moving takes", WaitInput{MoveTime: 3 * s, Slot: unknown}, 3 * s},
		{"none: the slot at home is sooner", WaitInput{MoveTime: 3 * s, Slot: in(2 * s)}, 3 * s},
		{"none: the slot at home is later", WaitInput{MoveTime: 3 * s, Slot: in(4 * s)}, 0},
		{"dynamic as none", WaitInput{Rule: locality.Rule{Kind: locality.Dynamic}, MoveTime: 3 * s, Slot: in(4 * s)}, 0},
		{"fixed", WaitInput{Rule: locality.Rule{Kind: locality.Fixed, Delay: 7 * s}, MoveTime: 3 * s, Slot: in(9 * s)}, 7 * s},
		{"paper", WaitInput{Rule: locality.Rule{Kind: locality.Paper}, MoveTime: 3 * s, RemoteCost: 5 * s, Slot: in(9 * s)}, 5 * s},
		{"one move", WaitInput{MoveTime: 3 * s, Moves: 1, Slot: in(4 * s)}, 0},
		{"two moves: twice as long", WaitInput{MoveTime: 3 * s, Moves: 2, Slot: in(4 * s)}, 6 * s},
		{"three", WaitInput{MoveTime: 3 * s, Moves: 3, Slot: in(4 * s)}, 12 * s},
		{"bounded", WaitInput{MoveTime: 3 * s, Moves: 100, Slot: in(4 * s)}, 3 * s << maxDoublings},
	} {
		if got := MaxWait(x.w); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
