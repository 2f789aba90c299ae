package jobtracker

import (
	"testing"
	"testing/synctest"
)

// TestOneTickWaits: while events wait, the timer adds one Tick behind them, however often watches make
// it fire. Ticks would else fill the inbox.
func TestOneTickWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Log: NewMemoryLog()})
		defer close(s.done)
		s.inbox <- func() {}
		for range 10 {
			s.tick()
		}
		synctest.Wait()
		if n := len(s.inbox); n != 2 {
			t.Errorf("%d events wait, want the first one and a Tick", n)
		}
		for range 2 {
			(<-s.inbox)()
		}
		if s.tick(); s.ticking {
			t.Error("a Tick waits although no event does")
		}
	})
}
