package main

import (
	"context"
	"errors"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/wire"
)

// fakeGossip is a fake of gossip.Gossip.
type fakeGossip struct {
	mu      sync.Mutex
	list    []gossip.Member
	changed chan struct{}
}

func (n *fakeGossip) Members() []gossip.Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}

func (n *fakeGossip) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *fakeGossip) set(list ...gossip.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
	if n.changed != nil {
		close(n.changed)
	}
	n.changed = make(chan struct{})
}

// answer says how an address answers: after a delay, with an error, or never.
type answer struct {
	after   time.Duration
	err     error
	stopped bool
}

type fakeNetwork struct {
	connects bool // all addresses accept TCP connections at once
	mu       sync.Mutex
	answer   map[string]answer
	dialed   []string
	open     map[string]int // streams that were opened and not closed
}

func (n *fakeNetwork) dial(ctx context.Context, addr string) (*wire.Conn, error) {
	n.mu.Lock()
	a := n.answer[addr]
	n.dialed = append(n.dialed, addr)
	connects := n.connects
	n.mu.Unlock()
	if trace := httptrace.ContextClientTrace(ctx); connects && trace != nil {
		trace.ConnectDone("tcp", addr, nil)
	}
	if a.stopped {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	timer := time.NewTimer(a.after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	n.count(addr, 1)
	return wire.NewConn(strings.NewReader(addr), nil, func() error {
		n.count(addr, -1)
		return nil
	}), nil
}

func (n *fakeNetwork) count(addr string, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = make(map[string]int)
	}
	n.open[addr] += by
}

// openAddr returns the address of the only open stream.
func (n *fakeNetwork) openAddr(t *testing.T) string {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	found := ""
	for addr, count := range n.open {
		if count != 0 && (count != 1 || found != "") {
			t.Errorf("streams are open: %v", n.open)
		}
		if count != 0 {
			found = addr
		}
	}
	return found
}

var errRefused = errors.New("connection refused")

func jobTrackers(ids ...string) []gossip.Member {
	list := []gossip.Member{{ID: "tt1", Role: gossip.TaskTracker, HTTP: "tt1"}}
	for _, id := range ids {
		list = append(list, gossip.Member{ID: id, Role: gossip.JobTracker, HTTP: id})
	}
	return list
}

func TestDial(t *testing.T) {
	slow := answer{after: 50 * time.Millisecond}
	for _, c := range []struct {
		name    string
		answers map[string]answer
		leader  string
		want    string        // addresses that may serve the stream, or a part of the error
		within  time.Duration // of virtual time
	}{
		{"the leader is known", nil, "b", "b", 0},
		{"the leader is known and slow", map[string]answer{"b": {after: 900 * time.Millisecond}}, "b", "b", 900 * time.Millisecond},
		{"the leader is dead", map[string]answer{"b": {err: errRefused}, "a": slow, "c": slow}, "b", "a c", 50 * time.Millisecond},
		{"the leader is stopped", map[string]answer{"b": {stopped: true}}, "b", "a c", time.Second},
		{"only one lives", map[string]answer{"a": {err: errRefused}, "b": {err: errRefused}}, "", "c", 0},
		{"two are stopped", map[string]answer{"a": {stopped: true}, "b": {stopped: true}}, "", "c", 600 * time.Millisecond},
		{"gossip does not know the leader", nil, "elsewhere", "elsewhere", 0},
		{"none lives", map[string]answer{"a": {err: errRefused}, "b": {err: errRefused}, "c": {err: errRefused}}, "", "connection refused", 0},
		{"all are stopped", map[string]answer{"a": {stopped: true}, "b": {stopped: true}, "c": {stopped: true}}, "", "deadline", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNetwork{answer: c.answers}
				g := &fakeGossip{}
				g.set(jobTrackers("a", "b", "c")...)
				f := &finder{gossip: g, open: n.dial}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				begin := time.Now()
				conn, err := f.dial(ctx, c.leader)
				if took := time.Since(begin); took > c.within {
					t.Errorf("it took %v, want %v at most", took, c.within)
				}
				synctest.Wait()
				if err != nil {
					if !strings.Contains(err.Error(), c.want) {
						t.Errorf("%v, not %s", err, c.want)
					}
					return
				}
				if got := n.openAddr(t); !slices.Contains(strings.Fields(c.want), got) {
					t.Errorf("the stream is from %s", got)
				}
				conn.Close()
				if got := n.openAddr(t); got != "" {
					t.Errorf("%s's stream stays open", got)
				}
			})
		})
	}
}

// TestDialWaitsForHandshake: a leader that accepts the connection has time for the handshakes of other
// task trackers. Meanwhile no other job tracker is dialed. A stopped process accepts too, so the
// wait ends.
func TestDialWaitsForHandshake(t *testing.T) {
	for _, c := range []struct {
		leader answer
		want   string // the addresses dialed
	}{
		{answer{after: 3 * time.Second}, "b"},
		{answer{stopped: true}, "b c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &fakeNetwork{connects: true, answer: map[string]answer{"b": c.leader}}
			f := &finder{static: []string{"a", "b", "c"}, open: n.dial}
			conn, err := f.dial(t.Context(), "b")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			synctest.Wait()
			if got := strings.Join(n.dialed, " "); got != c.want {
				t.Errorf("leader %+v: dialed %s, want %s", c.leader, got, c.want)
			}
		})
	}
}

// TestDialAfterFailedHandshake: a leader's second address connects after the dial has failed, as in a
// race of IPv6 and IPv4. The next job trackers are dialed as if it had not connected.
func TestDialAfterFailedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: map[string]answer{"b": {err: errRefused}, "c": {stopped: true}}}
		open := func(ctx context.Context, addr string) (*wire.Conn, error) {
			if trace := httptrace.ContextClientTrace(ctx); trace != nil {
				time.AfterFunc(100*time.Millisecond, func() { trace.ConnectDone("tcp", addr, nil) })
			}
			return n.dial(ctx, addr)
		}
		f := &finder{static: []string{"a", "b", "c"}, open: open, rotation: 1}
		began := time.Now()
		conn, err := f.dial(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if took := time.Since(began); took != otherWait {
			t.Errorf("dialed %v within %v, want %v", n.dialed, took, otherWait)
		}
		synctest.Wait()
	})
}

// TestDialWaitsForGossip: dial waits until gossip has found a job tracker.
func TestDialWaitsForGossip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, g := &fakeNetwork{}, &fakeGossip{}
		g.set(jobTrackers()...)
		f := &finder{gossip: g, open: n.dial}
		time.AfterFunc(time.Second, func() { g.set(jobTrackers("a")...) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := f.dial(ctx, ""); err != nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		g.set(jobTrackers()...)
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := f.dial(ctx, ""); err == nil || !strings.Contains(err.Error(), "no job tracker") {
			t.Errorf("without job trackers: %v", err)
		}
	})
}

func TestOrder(t *testing.T) {
	f := &finder{static: []string{"s"}}
	found := jobTrackers("a", "b")
	found[1].Suspect = true
	for _, c := range []struct {
		leader string
		want   []string
	}{
		{"", []string{"b", "s", "a"}},
		{"", []string{"s", "b", "a"}},
		{"a", []string{"a", "b", "s"}},
		{"s", []string{"s", "b", "a"}},
	} {
		if got := f.order(c.leader, found); !slices.Equal(got, c.want) {
			t.Errorf("leader %q: %v, not %v", c.leader, got, c.want)
		}
	}
}
