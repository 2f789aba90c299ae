package health

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

func TestLosses(t *testing.T) {
	var l Losses
	current := func(now time.Duration) (names []string) {
		for _, x := range l.Current(now) {
			names = append(names, x.Tracker)
		}
		return names
	}
	l.Add(wire.LostTracker{Tracker: "b", Maps: 1}, 0)
	l.Add(wire.LostTracker{Tracker: "a"}, time.Hour)
	l.Add(wire.LostTracker{Tracker: "b", Maps: 2}, 2*time.Hour) // it was back, and is lost again
	for now, want := range map[time.Duration][]string{
		2 * time.Hour: {"a", "b"}, 25*time.Hour - 1: {"a", "b"}, 25 * time.Hour: {"b"}, 26 * time.Hour: nil,
	} {
		if got := current(now); !slices.Equal(got, want) {
			t.Errorf("at %v the losses are %v, want %v", now, got, want)
		}
	}
	if list := l.Current(2 * time.Hour); list[1].Maps != 2 {
		t.Errorf("after its second loss b is %+v", list[1])
	}
	if l.Remove("b"); !slices.Equal(current(2*time.Hour), []string{"a"}) {
		t.Errorf("after Remove(b) the losses are %v", current(2*time.Hour))
	}
	for i := range 100 {
		l.Add(wire.LostTracker{Tracker: fmt.Sprintf("t%02d", i)}, 2*time.Hour)
	}
	if got := current(2 * time.Hour); len(got) != 100 || got[0] != "t00" {
		t.Errorf("of 101 losses %d are listed, the first is %s", len(got), got[0])
	}
}
