package shares

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestUpdate passes lists to one List, in order.
func TestUpdate(t *testing.T) {
	const s = time.Second
	of := func(list ...float64) (shares []wire.JobShare) { // job, share, job, share …
		for i := 0; i < len(list); i += 2 {
			shares = append(shares, wire.JobShare{Job: wire.JobID{N: int(list[i])}, Share: list[i+1]})
		}
		return shares
	}
	var l List
	version := 1
	for _, x := range []struct {
		name     string
		at       time.Duration
		list     []wire.JobShare
		replaced bool
	}{
		{"nothing, at first", 0, nil, false},
		{"the first list, at once", 0, of(1, 0.5, 2, 0.5), true},
		{"a little more, later", 10 * s, of(1, 0.6, 2, 0.4), false},
		{"much more, later", 10 * s, of(1, 0.7, 2, 0.3), true},
		{"the same first job, soon", 10*s + s/2, of(1, 1), false},
		{"the same first job, a period later", 11 * s, of(1, 1), true},
		{"another first job, soon", 11 * s, of(2, 1), true},
		{"nothing, soon", 11 * s, nil, true},
		{"nothing again", 20 * s, nil, false},
		{"something, soon after nothing", 11 * s, of(2, 1), true},
	} {
		if got := l.Update(x.list, x.at, s); got != x.replaced {
			t.Errorf("%s: replaced: %v", x.name, got)
		}
		if x.replaced {
			version++
		}
		if l.Version() != version || x.replaced && !slices.Equal(l.List(), x.list) {
			t.Errorf("%s: version %d has %v", x.name, l.Version(), l.List())
		}
	}
}

func TestTakeStale(t *testing.T) {
	var l List
	l.MarkStale(7)
	l.MarkStale(3)
	l.MarkStale(7)
	if got := slices.Collect(l.TakeStale()); !slices.Equal(got, []int{3, 7}) {
		t.Errorf("marked: %v", got)
	}
	if got := slices.Collect(l.TakeStale()); len(got) != 0 {
		t.Errorf("marked after TakeStale: %v", got)
	}
}
