package replica

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var behind = flag.Bool("behind", false, "TestFollowerBehind also sends 256 entries of 1 MiB over the slow network")

// slowRate is 100 Mbit/s, in bytes a second.
const slowRate = 100e6 / 8

// slowConn is a connection that sends at slowRate.
type slowConn struct {
	net.Conn
	batch   int           // bytes since the last answer
	largest *atomic.Int64 // the most bytes of a batch
	busy    time.Time     // until then the network carries earlier bytes
}

func (c *slowConn) Write(p []byte) (n int, err error) {
	const packet = 64 << 10
	for n < len(p) && err == nil {
		next := p[n:min(n+packet, len(p))]
		now := time.Now()
		if c.busy.Before(now) {
			c.busy = now
		}
		c.busy = c.busy.Add(time.Duration(float64(len(next)) / slowRate * 1e9))
		<-time.After(time.Until(c.busy))
		var sent int
		sent, err = c.Conn.Write(next)
		n += sent
	}
	c.batch += n
	c.largest.Store(max(c.largest.Load(), int64(c.batch)))
	return n, err
}

// Read implements net.Conn. An answer ends a batch.
func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.batch = 0
	return n, err
}

// TestFollowerBehind: a follower that has missed many entries gets them over 100 Mbit/s, although
// all of them need longer than raft's deadline for a request. The bytes of a batch are limited.
// Row 48 of docs/promises.md.
func TestFollowerBehind(t *testing.T) {
	t.Parallel()
	for _, size := range []int{128 << 10, 1 << 20} {
		t.Run(fmt.Sprintf("%d KiB", size>>10), func(t *testing.T) {
			t.Parallel()
			if size >= 1<<20 && !*behind {
				t.Skip("-behind runs it, for half a minute")
			}
			followerBehind(t, size)
		})
	}
}

func followerBehind(t *testing.T, size int) {
	const entries = 256
	var largest atomic.Int64
	network := newLinks()
	g := newGroup(t, 3, func(c *Config) {
		c.SnapshotBytes = 1 << 40
		network.join(c)
		dial := c.dial
		c.dial = func(addr string, d time.Duration) (net.Conn, error) {
			conn, err := dial(addr, d)
			if err != nil || !network.leadsTo(addr, "jt3") {
				return conn, err
			}
			return &slowConn{Conn: conn, largest: &largest}, nil
		}
		if c.ID == "jt3" {
			c.Timeout = patience // so that it never leads
		}
	})
	network.setAddrs(g.nodes...)
	last := g.nodes[2]
	g.check(g.commitOnce("before"))
	network.isolate("jt3", true)
	text := strings.Repeat("x", size)
	others := g.others(last)
	for i := range entries {
		g.commit(fmt.Sprint("entry ", i, text), others...)
	}
	begin := time.Now()
	network.isolate("jt3", false)
	last.awaitEntry(fmt.Sprint("entry ", entries-1, text))
	limit := int64(17*(size+1<<10) + 1<<20)
	t.Logf("%d entries of %d KiB in %v, %d KiB in the largest batch", entries, size>>10, time.Since(begin).Round(time.Millisecond), largest.Load()>>10)
	if n := largest.Load(); n == 0 || n > limit {
		t.Errorf("a batch has %d bytes, want at most %d", n, limit)
	}
}

// leadsTo reports whether an address is of a replica.
func (l *links) leadsTo(addr, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addrs[addr] == id
}

// deadlineConn records the last deadline.
type deadlineConn struct {
	net.Conn
	at time.Time
}

func (c *deadlineConn) SetDeadline(at time.Time) error {
	c.at = at
	return nil
}

func (c *deadlineConn) Write(p []byte) (int, error) { return len(p), nil }

// TestBatchDeadline: the deadline of a request grows with its bytes, and the next request does not
// inherit it.
func TestBatchDeadline(t *testing.T) {
	var inner deadlineConn
	c := &tracked{Conn: &inner}
	begin := time.Unix(1000, 0)
	c.Write(make([]byte, 1))
	if !inner.at.IsZero() {
		t.Error("a write without a deadline sets one")
	}
	c.SetDeadline(begin)
	for range 16 {
		c.Write(make([]byte, 16<<20)) // the largest batch: entries of MaxEntry
	}
	if want := begin.Add(256 * time.Second); !inner.at.Equal(want) {
		t.Errorf("after 256 MiB the deadline is %v later, want %v", inner.at.Sub(begin), want.Sub(begin))
	}
	c.SetDeadline(begin)
	if !inner.at.Equal(begin) {
		t.Error("the next request has not its own deadline")
	}
}
