package history

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

func drawPlanned(t *rapid.T, at int64) Planned {
	p := Planned{
		At: at, Phase: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"),
		Scheduling: wire.Scheduling{Scheduler: rapid.SampledFrom([]string{"", "fifo", "flex"}).Draw(t, "scheduler"), Delay: "none"},
		Target:     rapid.IntRange(0, 3).Draw(t, "target"),
		End:        rapid.SampledFrom([]int64{0, 5, at + 1000}).Draw(t, "end"),
		Share:      float64(rapid.IntRange(0, 1_000_000).Draw(t, "share")) / 1e6,
		ShareRank:  rapid.IntRange(0, 3).Draw(t, "turn"),
	}
	if p.Places = rapid.IntRange(0, 4).Draw(t, "of"); p.Places > 0 {
		p.Place = rapid.IntRange(0, p.Places).Draw(t, "place")
	}
	for range rapid.IntRange(0, 3).Draw(t, "queues") {
		p.Queues = append(p.Queues, Queued{
			Tracker: rapid.SampledFrom([]string{"", "t1", "t2", "t3"}).Draw(t, "tracker"),
			After:   rapid.IntRange(0, 200).Draw(t, "after"), Tasks: rapid.IntRange(1, 300).Draw(t, "tasks"),
		})
	}
	return p
}

// TestPlanLog checks that decoding gives the added entries. An earlier time is raised to that of
// the entry before.
func TestPlanLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log PlanLog
		var want []Planned
		at, last := int64(1_700_000_000_000), int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "plans") {
			at += rapid.Int64Range(-100, 1000).Draw(t, "later")
			p := drawPlanned(t, at)
			log.Add(p)
			last = max(last, at)
			p.At = last
			want = append(want, p)
			if got := log.Last(p.Phase); !reflect.DeepEqual(*got, p) {
				t.Fatalf("the last is %+v, want %+v", *got, p)
			}
		}
		got, err := ParsePlans(log.Bytes())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, %v\nwant %+v", got, err, want)
		}
		if cut := rapid.IntRange(0, len(log.Bytes())).Draw(t, "cut"); cut < len(log.Bytes()) {
			got, err := ParsePlans(log.Bytes()[:cut])
			if err == nil && len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)]) || err != nil && !errors.Is(err, ErrNotHistory) {
				t.Fatalf("cut off after %d bytes it is read as %+v, %v", cut, got, err)
			}
		}
	})
}

// TestPlanLogSize checks that a change of slots and place takes few bytes. A log that gets
// too large must drop its older half, keep each phase's plan in force, and set Lost.
func TestPlanLogSize(t *testing.T) {
	var log PlanLog
	plan := func(i int) Planned {
		p := Planned{At: 1_700_000_000_000 + int64(i)*20, Phase: wire.Map, Target: i % 90, Place: i%7 + 1, Places: 7}
		if i%1000 == 0 {
			p.Phase = wire.Reduce
		}
		return p
	}
	const few = 1000
	for i := range few {
		log.Add(plan(i))
	}
	each := float64(len(log.Bytes())) / few
	t.Logf("%.1f bytes a plan", each)
	if each > 6 {
		t.Errorf("%.1f bytes a plan", each)
	}
	n := few
	for ; log.LostBefore == 0; n++ {
		if n > MaxPlanLog {
			t.Fatal("no entry was dropped")
		}
		log.Add(plan(n))
	}
	for end := n + 10; n < end; n++ {
		log.Add(plan(n))
	}
	got, err := ParsePlans(log.Bytes())
	if err != nil || len(log.Bytes()) > MaxPlanLog {
		t.Fatalf("%d bytes: %v", len(log.Bytes()), err)
	}
	first := slices.IndexFunc(got, func(p Planned) bool { return p.Phase == wire.Map })
	if first != 1 || got[0].Phase != wire.Reduce || got[0].At != log.LostBefore || got[first].At != log.LostBefore {
		t.Errorf("it begins with %+v, %+v; lost before %d", got[0], got[1], log.LostBefore)
	}
	for i, p := range got[first:] {
		if want := plan(n - len(got) + first + i); !reflect.DeepEqual(p, want) {
			t.Fatalf("got %+v, want %+v", p, want)
		}
	}
	huge := plan(n)
	for i := range MaxPlanLog / 4 {
		huge.Queues = append(huge.Queues, Queued{Tracker: fmt.Sprint(i), Tasks: 1})
	}
	log.Add(huge)
	if len(log.Bytes()) > 0 || log.LostBefore <= huge.At {
		t.Errorf("after one that is too large %d bytes, lost before %d", len(log.Bytes()), log.LostBefore)
	}
	if _, err := ParsePlans(make([]byte, MaxPlanLog+2)); !errors.Is(err, ErrNotHistory) {
		t.Errorf("a log that is too large: %v", err)
	}
	log.Add(plan(n + 1))
	if got, err := ParsePlans(log.Bytes()); err != nil || !reflect.DeepEqual(got, []Planned{plan(n + 1)}) {
		t.Errorf("then %+v, %v", got, err)
	}
}

// FuzzPlans checks that any log is decoded or refused, and that decoded entries can be
// encoded.
func FuzzPlans(f *testing.F) {
	var log PlanLog
	log.Add(Planned{At: 5, Phase: wire.Map, Scheduling: wire.Scheduling{Scheduler: "flex", Metric: "m", Delay: "d"}, Target: 3, Place: 1, Places: 2, End: 9})
	log.Add(Planned{At: 9, Phase: wire.Reduce, Queues: []Queued{{"t1", 0, 3}, {"t2", 4, 1}}, Share: 0.5, ShareRank: 1})
	f.Add(log.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var plans []Planned
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 512}.Check(t, len(data), func() { plans, err = ParsePlans(data) })
		if err != nil {
			if !errors.Is(err, ErrNotHistory) {
				t.Fatal(err)
			}
			return
		}
		var copied PlanLog
		for _, p := range plans {
			copied.Add(p)
		}
		if got, err := ParsePlans(copied.Bytes()); err != nil || !reflect.DeepEqual(got, plans) {
			t.Fatalf("%+v is read again as %+v, %v", plans, got, err)
		}
	})
}
