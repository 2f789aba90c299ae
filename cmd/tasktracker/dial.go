package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/wire"
)

// members has the methods of gossip.Gossip that find the addresses of job trackers.
type members interface {
	Members() []gossip.Member
	Changed() <-chan struct{}
}

// finder opens a stream to a job tracker, first to the supposed leader. If an address does not
// answer soon, it also dials the next one.
type finder struct {
	static []string // addresses from -jobtracker
	gossip members  // nil: static has all addresses
	open   func(ctx context.Context, addr string) (*wire.Conn, error)

	mu       sync.Mutex
	rotation int // counts calls of order, to rotate addresses of equal rank
}

// Time after which the next address is dialed, too. The supposed leader gets more time, since the
// others would only name it again. If it is reached, the handshakes of other trackers delay ours.
const (
	leaderWait    = time.Second
	handshakeWait = 4 * time.Second
	otherWait     = 300 * time.Millisecond
)

// dial implements tasktracker.Dial.
func (f *finder) dial(ctx context.Context, leader string) (*wire.Conn, error) {
	addrs, err := f.addresses(ctx, leader)
	if err != nil {
		return nil, err
	}
	return f.race(ctx, addrs, leader)
}

// addresses lists addresses to dial, best first. It waits until there is at least one.
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

// order lists the leader, then the others in rotation, then job trackers that gossip suspects.
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
	f.rotation++
	var addrs []string
	if leader != "" {
		addrs = append(addrs, leader)
	}
	for i := range alive {
		addrs = append(addrs, alive[(i+f.rotation)%len(alive)])
	}
	addrs = append(addrs, suspected...)
	seen := make(map[string]bool)
	return slices.DeleteFunc(addrs, func(addr string) bool {
		twice := seen[addr]
		seen[addr] = true
		return twice
	})
}

// result is the result of dialing one address.
type result struct {
	addr string
	conn *wire.Conn
	err  error
}

// race returns the first stream that opens. It dials the addresses in order, and goes on to the
// next after a failure or a wait.
func (f *finder) race(ctx context.Context, addrs []string, leader string) (*wire.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	results, reached := make(chan result, len(addrs)), make(chan struct{}, 1)
	running := 0
	defer func() { go discard(results, running, cancel) }()
	var errs []error
	for timer := time.NewTimer(0); running > 0 || len(addrs) > 0; {
		select {
		case <-timer.C:
			if len(addrs) == 0 {
				continue
			}
			addr, wait, ctx := addrs[0], otherWait, ctx
			addrs, running = addrs[1:], running+1
			if addr == leader {
				wait, ctx = leaderWait, whenConnected(ctx, reached)
			}
			go func() {
				conn, err := f.open(ctx, addr)
				results <- result{addr, conn, err}
			}()
			timer.Reset(wait)
		case <-reached:
			timer.Reset(handshakeWait)
		case r := <-results:
			running--
			if r.err == nil {
				return r.conn, nil
			}
			if r.addr == leader {
				reached = nil // do not wait for a handshake that has failed
			}
			errs = append(errs, fmt.Errorf("%s: %w", r.addr, r.err))
			timer.Reset(0)
		case <-ctx.Done():
			return nil, errors.Join(append(errs, ctx.Err())...)
		}
	}
	return nil, errors.Join(errs...)
}

// whenConnected returns a context for a dial that sends to reached when its TCP connection is open,
// before the TLS handshake.
func whenConnected(ctx context.Context, reached chan<- struct{}) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, _ string, err error) {
		if err != nil {
			return
		}
		select {
		case reached <- struct{}{}:
		default: // a name with two addresses
		}
	}})
}

// discard cancels the other dials and closes their streams.
func discard(results <-chan result, running int, cancel context.CancelFunc) {
	cancel()
	for range running {
		if r := <-results; r.err == nil {
			r.conn.Close()
		}
	}
}
