package workers

import (
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
)

// receive waits for what must happen.
func receive(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited too long for %s", what)
	}
}

// sluggish is a worker that takes its time to be limited.
type sluggish struct {
	Worker
	limiting, killed chan struct{}
}

func (w *sluggish) Limit(core.Limit, func(string)) {
	close(w.limiting)
	<-w.killed
}

func (w *sluggish) Kill() { close(w.killed) }

// TestKillWhileLimited: who kills a worker, the tracker's loop, waits for nothing.
func TestKillWhileLimited(t *testing.T) {
	w := &sluggish{limiting: make(chan struct{}), killed: make(chan struct{})}
	h := newHandle(nil, 1, nil)
	h.worker = w
	applied, killed := make(chan struct{}), make(chan struct{})
	go func() {
		h.apply()
		close(applied)
	}()
	receive(t, w.limiting, "the limit")
	go func() {
		h.kill()
		close(killed)
	}()
	receive(t, killed, "the kill")
	receive(t, applied, "the limit's end")
}
