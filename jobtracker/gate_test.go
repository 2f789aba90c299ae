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

// TestFilesAtOnce: at most maxFileEffects effects on files run at once, even if they hang. Plans do
// not wait for them. Delayed effects and plans do not count.
func TestFilesAtOnce(t *testing.T) {
	const effects = 10 * maxFileEffects
	s := New(Config{Log: newScriptedLog(), FS: mem.New(1 << 20)})
	s.leadership.Store(&core.Leadership{Leads: true, Epoch: 1})
	var running, done atomic.Int32
	started, hang := make(chan bool, effects), make(chan bool)
	for range maxFileEffects {
		s.runOnFiles(1, time.Hour, func() core.Event { t.Error("an effect runs before its delay is over"); return core.Tick{} })
	}
	for range effects {
		s.runOnFiles(1, 0, func() core.Event {
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
	s.startEffect(core.Allocate{Epoch: 1, Phase: wire.Map, Policy: "fifo"})
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

// TestGateOrder: waiting functions run in the order of add.
func TestGateOrder(t *testing.T) {
	g := gate{limit: 1}
	var ran []int
	hang, last := make(chan bool), make(chan bool)
	g.add(func() { <-hang })
	for i := range 100 {
		g.add(func() { ran = append(ran, i) })
	}
	g.add(func() { close(last) })
	close(hang)
	<-last
	if len(ran) != 100 || !slices.IsSorted(ran) {
		t.Errorf("ran in the order %v", ran)
	}
}
