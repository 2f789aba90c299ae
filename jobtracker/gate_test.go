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

// TestFilesAtOnce: at most maxFileEffects run at once, even if they hang. Plans do not wait for
// them, and neither delayed effects nor plans take their slots.
func TestFilesAtOnce(t *testing.T) {
	const effects = 10 * maxFileEffects
	s := New(Config{Log: newScript(), FS: mem.New(1 << 20)})
	s.epoch.Store(1)
	var running, done atomic.Int32
	started, hang := make(chan bool, effects), make(chan bool)
	for range maxFileEffects {
		s.do(1, time.Hour, func() core.Event { t.Error("it runs before its time"); return core.Tick{} })
	}
	for range effects {
		s.do(1, 0, func() core.Event {
			if n := running.Add(1); n > maxFileEffects {
				t.Errorf("%d effects run at once", n)
			}
			started <- true
			<-hang
			running.Add(-1)
			done.Add(1)
			return core.Tick{}
		})
	}
	for range maxFileEffects {
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

// TestGateOrder: waiting functions run in their order.
func TestGateOrder(t *testing.T) {
	g := gate{limit: 1}
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
