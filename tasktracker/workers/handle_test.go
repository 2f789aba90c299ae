package workers

import (
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
)

// receive waits for an event that must happen.
func receive(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited too long for %s", what)
	}
}

// slowWorker is a worker with a Limit that blocks until Kill.
type slowWorker struct {
	Worker
	limiting, killed chan struct{}
}

func (w *slowWorker) Limit(core.Limit, func(string)) {
	close(w.limiting)
	<-w.killed
}

func (w *slowWorker) Kill() { close(w.killed) }

// TestKillWhileLimited: Kill, which the tracker's loop calls, never waits for Limit.
func TestKillWhileLimited(t *testing.T) {
	w := &slowWorker{limiting: make(chan struct{}), killed: make(chan struct{})}
	h := newHandle(nil, 1, nil)
	h.worker = w
	applied, killed := make(chan struct{}), make(chan struct{})
	go func() {
		h.applyLimit()
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
