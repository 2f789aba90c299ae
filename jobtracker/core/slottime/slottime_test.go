package slottime

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestAddsUp lets attempts and reservations begin and end in any order, and compares the total with the
// number of slots that the job has in each millisecond. The reports of trackers may be wrong.
func TestAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sums
		var running, reserved []int64
		var lost []Ended
		now, held := int64(1000), int64(0)
		take := func(list *[]int64) int64 {
			i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
			at := (*list)[i]
			*list = append((*list)[:i], (*list)[i+1:]...)
			return at
		}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			passed := rapid.Int64Range(0, 50).Draw(t, "passed")
			now, held = now+passed, held+passed*int64(len(running)+len(reserved))
			switch do := rapid.IntRange(0, 4).Draw(t, "event"); {
			case do == 0:
				running = append(running, now)
				s.Launched(now)
			case do == 1:
				reserved = append(reserved, now)
				s.Reserved(now)
			case do == 2 && len(reserved) > 0:
				s.Released(take(&reserved), now)
			case do == 3 && len(running) > 0:
				at := take(&running)
				s.Vacated(at)
				x := drawEnded(t, now-at)
				if s.Add(&x); x.Lost {
					lost = append(lost, x)
				}
			case do == 4 && len(lost) > 0: // it is reported after all, with another time
				x := lost[0]
				lost = lost[1:]
				s.Remove(&x)
				again := drawEnded(t, rapid.Int64Range(0, 100).Draw(t, "held"))
				again.Lost = false
				s.Add(&again)
				held += again.Held - x.Held
			}
			check(t, s.Status(now, 0), held)
		}
	})
}

func drawEnded(t *rapid.T, held int64) Ended {
	d := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(-1, 60).Draw(t, "ms")) * time.Millisecond
	})
	yes := rapid.Bool()
	return Ended{
		Kind: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "kind"), State: rapid.SampledFrom([]wire.AttemptState{wire.AttemptSucceeded, wire.AttemptFailed, wire.AttemptKilled}).Draw(t, "state"),
		Held: held, Before: rapid.Int64Range(0, 60).Draw(t, "before"), Outrun: yes.Draw(t, "outrun"), Again: yes.Draw(t, "again"), Lost: yes.Draw(t, "lost"),
		Started: d.Draw(t, "started"), Read: d.Draw(t, "read"), Shuffled: d.Draw(t, "shuffled"), Completed: d.Draw(t, "completed"),
	}
}

func check(t *rapid.T, x *wire.SlotTime, held int64) {
	if x == nil {
		if held != 0 {
			t.Fatalf("no slot time, want %d ms", held)
		}
		return
	}
	sum := int64(0)
	for _, u := range x.Uses {
		if sum += u.Millis; u.Millis < 0 || u.Attempts < 1 {
			t.Fatalf("%+v in %+v", u, x)
		}
	}
	if sum != held || x.Total != held {
		t.Fatalf("%d ms in all, the uses add up to %d; slots were held for %d", x.Total, sum, held)
	}
}

// TestUses tests what the time of each kind of end counts as.
func TestUses(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		end  Ended
		want map[wire.SlotUse]int64
	}{
		{"map", Ended{Kind: wire.Map, State: wire.AttemptSucceeded, Held: 100, Before: 3, Started: 20 * ms, Read: 30 * ms},
			map[wire.SlotUse]int64{wire.SlotStart: 23, wire.SlotRead: 30, wire.SlotMap: 47}},
		{"reduce", Ended{Kind: wire.Reduce, State: wire.AttemptSucceeded, Held: 100, Started: 1 * ms, Shuffled: 30 * ms, Completed: 9 * ms},
			map[wire.SlotUse]int64{wire.SlotStart: 1, wire.SlotShuffle: 30, wire.SlotReduce: 60, wire.SlotCommit: 9}},
		{"reads overlap", Ended{Kind: wire.Map, State: wire.AttemptSucceeded, Held: 100, Before: 60, Read: 80 * ms},
			map[wire.SlotUse]int64{wire.SlotStart: 60, wire.SlotRead: 40, wire.SlotMap: 0}},
		{"failed", Ended{Kind: wire.Map, State: wire.AttemptFailed, Held: 100, Before: 60, Outrun: true}, map[wire.SlotUse]int64{wire.SlotFailed: 100}},
		{"killed", Ended{Kind: wire.Map, State: wire.AttemptKilled, Held: 100}, map[wire.SlotUse]int64{wire.SlotKilled: 100}},
		{"outrun", Ended{Kind: wire.Map, State: wire.AttemptKilled, Held: 100, Outrun: true}, map[wire.SlotUse]int64{wire.SlotSpeculative: 100}},
		{"second success", Ended{Kind: wire.Map, State: wire.AttemptSucceeded, Held: 100, Outrun: true, Again: true}, map[wire.SlotUse]int64{wire.SlotSpeculative: 100}},
		{"rerun", Ended{Kind: wire.Map, State: wire.AttemptSucceeded, Held: 100, Again: true, Read: 9 * ms}, map[wire.SlotUse]int64{wire.SlotRerun: 100}},
		{"lost", Ended{Kind: wire.Map, State: wire.AttemptKilled, Held: 100, Lost: true, Outrun: true}, map[wire.SlotUse]int64{wire.SlotLost: 100}},
	} {
		var s Sums
		s.Add(&c.end)
		x := s.Status(0, 0)
		if len(x.Uses) != len(c.want) || x.Total != 100 {
			t.Errorf("%s: %+v, want %v", c.name, x, c.want)
		}
		for use, millis := range c.want {
			if got := x.Of(use); got.Millis != millis || got.Attempts != 1 {
				t.Errorf("%s: %+v, want %d", c.name, got, millis)
			}
		}
	}
}
