package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/wire"
)

// members is what tells where job trackers are: a gossip.Gossip.
type members interface {
	Members() []gossip.Member
	Changed() <-chan struct{}
}

// finder dials job trackers. The one that is said to lead is tried first. One that
// does not answer, which may be stopped or half gone, does not hold the others up:
// they are tried while it may still answer.
type finder struct {
	static []string // addresses that were configured
	gossip members  // nil: those are all
	open   func(ctx context.Context, addr string) (*wire.Conn, error)

	mu   sync.Mutex
	turn int // where to begin among addresses of equal rank
}

// How long one address may take until the next is tried as well. Who is said to
// lead gets longer, since the others would only name it again.
const (
	hintHead  = time.Second
	otherHead = 300 * time.Millisecond
)

// dial implements tasktracker.Dial.
func (f *finder) dial(ctx context.Context, leader string) (*wire.Conn, error) {
	addrs, err := f.addresses(ctx, leader)
	if err != nil {
		return nil, err
	}
	return f.race(ctx, addrs, leader)
}

// addresses lists where to dial, best first; it waits until there is one.
func (f *finder) addresses(ctx context.Context, leader string) ([]string, error) {
	for {
		var changed <-chan struct{}
		var found []gossip.Member
		if f.gossip != nil {
			changed = f.gossip.Changed()
			found = f.gossip.Members()
		}
		if addrs := f.order(leader, found); len(addrs) > 0 {
			return addrs, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("gossip has found no job tracker yet")
		}
	}
}

// order is the leader, then the others in turn, then those that are suspected.
func (f *finder) order(leader string, found []gossip.Member) []string {
	alive, suspected := slices.Clone(f.static), []string(nil)
	for _, m := range found {
		switch {
		case m.Role != gossip.JobTracker || m.HTTP == "":
		case m.Suspect:
			suspected = append(suspected, m.HTTP)
		default:
			alive = append(alive, m.HTTP)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	var addrs []string
	if leader != "" {
		addrs = append(addrs, leader)
	}
	for i := range alive {
		addrs = append(addrs, alive[(i+f.turn)%len(alive)])
	}
	addrs = append(addrs, suspected...)
	seen := make(map[string]bool)
	return slices.DeleteFunc(addrs, func(addr string) bool {
		twice := seen[addr]
		seen[addr] = true
		return twice
	})
}

// result is how one attempt to dial has ended.
type result struct {
	addr string
	conn *wire.Conn
	err  error
}

// race tries the addresses one after the other, the next when one has failed or
// takes long, and takes the first stream that opens.
func (f *finder) race(ctx context.Context, addrs []string, leader string) (*wire.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, len(addrs))
	next, running := 0, 0
	defer func() { go discard(results, running, cancel) }()
	var errs []error
	for {
		var late <-chan time.Time
		if next < len(addrs) {
			addr := addrs[next]
			next, running = next+1, running+1
			go func() {
				conn, err := f.open(ctx, addr)
				results <- result{addr, conn, err}
			}()
			head := otherHead
			if addr == leader {
				head = hintHead
			}
			timer := time.NewTimer(head)
			defer timer.Stop()
			late = timer.C
		}
		if running == 0 {
			return nil, errors.Join(errs...)
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				return r.conn, nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", r.addr, r.err))
		case <-late:
		case <-ctx.Done():
			return nil, errors.Join(append(errs, ctx.Err())...)
		}
	}
}

// discard ends the attempts that are not needed.
func discard(results <-chan result, running int, cancel context.CancelFunc) {
	cancel()
	for range running {
		if r := <-results; r.err == nil {
			r.conn.Close()
		}
	}
}
