package jobtracker

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// TestFilesAtOnce: as many effects on files run at once as may, also when all of them hang;
// a plan is made all the same. One that waits for its time takes no other's place.
func TestFilesAtOnce(t *testing.T) {
	const effects = 10 * mostFiles
	s := New(Config{Log: newScript(), FS: mem.New(1 << 20)})
	s.office.Store(1)
	var running, done atomic.Int32
	started, hang := make(chan bool, effects), make(chan bool)
	for range mostFiles {
		s.do(1, time.Hour, func() core.Event { t.Error("its time has not come"); return core.Tick{} })
	}
	for range effects {
		s.do(1, 0, func() core.Event {
			if n := running.Add(1); n > mostFiles {
				t.Errorf("%d effects run at once", n)
			}
			started <- true
			<-hang
			running.Add(-1)
			done.Add(1)
			return core.Tick{}
		})
	}
	for range mostFiles {
		<-started
	}
	s.effect(core.Allocate{Epoch: 1, Phase: wire.Map, Policy: "fifo"})
	<-s.inbox // the plan
	close(hang)
	for range effects {
		<-s.inbox
	}
	if done.Load() != effects {
		t.Errorf("%d effects of %d are done", done.Load(), effects)
	}
	close(s.done)
	s.effects.Wait()
}

// TestGateOrder: what waits runs in the order in which it came.
func TestGateOrder(t *testing.T) {
	g := gate{most: 1}
	var ran []int
	hang, over := make(chan bool), make(chan bool)
	g.add(func() { <-hang })
	for i := range 100 {
		g.add(func() { ran = append(ran, i) })
	}
	g.add(func() { close(over) })
	close(hang)
	<-over
	if len(ran) != 100 || !slices.IsSorted(ran) {
		t.Errorf("ran in the order %v", ran)
	}
}
