package workers

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	h := newHandle(New(Config{}), 1, nil)
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

// TestHangingWorker: the log says that a worker has not ended long after its kill, and when it has. It says nothing of
// one that ends in time.
func TestHangingWorker(t *testing.T) {
	for lasts, want := range map[time.Duration]int{hangTime - time.Second: 0, hangTime + time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			h := newHandle(New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}), 1, nil)
			h.kill() // also while it is being prepared
			<-time.After(lasts)
			h.ended()
			h.kill()
			<-time.After(2 * hangTime)
			synctest.Wait()
			if got := strings.Count(log.String(), "\n"); got != want {
				t.Errorf("after %v the log is\n%s", lasts, log.String())
			}
		})
	}
}

// polite notes when it was asked to end.
type polite struct {
	Worker
	began time.Time
	seen  []string
}

func (p *polite) note(what string) {
	p.seen = append(p.seen, fmt.Sprint(what, " ", time.Since(p.began)))
}
func (p *polite) Dump()      { p.note("dump") }
func (p *polite) Terminate() { p.note("terminate") }
func (p *polite) Kill()      { p.note("kill") }

// TestEnd: a long time between Terminate and Kill does not lengthen the time for a dump.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		dump  bool
		want  []string
	}{
		{8 * time.Second, true, []string{"dump 0s", "terminate 1s", "kill 9s"}},
		{100 * time.Millisecond, true, []string{"dump 0s", "terminate 100ms", "kill 200ms"}},
		{8 * time.Second, false, []string{"terminate 0s", "kill 8s"}},
		{0, true, []string{"kill 0s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &polite{began: time.Now()}
			h := newHandle(New(Config{Grace: c.grace}), 1, nil)
			h.worker = w
			h.end(c.dump)
			<-time.After(time.Minute)
			synctest.Wait()
			h.kill() // orders the notes before this goroutine's reads
			if got := w.seen[:len(w.seen)-1]; !slices.Equal(got, c.want) {
				t.Errorf("with %v: %v, want %v", c.grace, got, c.want)
			}
		})
	}
}
