package jobtracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestInventoriesTakeTurns: while the core is busy, at most maxInventories pages of inventories wait
// for it. Trackers that wait for their turn hear acknowledgements, and all get their turn. Row 48 of
// docs/promises.md.
func TestInventoriesTakeTurns(t *testing.T) {
	const trackers = 12
	s := start(t, func(c *Config) { c.Lease = 4 * time.Second })
	var conns []*wire.Conn
	for i := range trackers {
		f := attach(t, s, fmt.Sprintf("t%d", i), uint64(i+1), 0)
		m, err := f.conn.Receive()
		if _, ok := m.(*wire.Welcome); !ok {
			t.Fatalf("got %T, %v", m, err)
		}
		conns = append(conns, f.conn)
	}
	goOn := make(chan struct{})
	s.post(func() { <-goOn })
	acknowledged := make(chan int, trackers)
	for i, conn := range conns {
		if err := conn.Send(&wire.Inventory{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			if m, err := conn.Receive(); err != nil {
				t.Errorf("tracker %d: %v", i, err)
			} else if _, ok := m.(*wire.Ack); !ok {
				t.Errorf("tracker %d got %T", i, m)
			}
			acknowledged <- i
		}()
	}
	for range trackers - maxInventories {
		<-acknowledged
	}
	if n := len(s.inventories); n != maxInventories {
		t.Errorf("%d inventories wait for the core, want %d", n, maxInventories)
	}
	close(goOn)
	for _, conn := range conns {
		if err := conn.Send(&wire.Heartbeat{}); err != nil { // it comes after the inventory
			t.Fatal(err)
		}
	}
	for range min(maxInventories, trackers) {
		<-acknowledged
	}
	connected := make(chan int, 1)
	s.post(func() {
		n := 0
		for _, x := range s.core.Cluster(s.now()).Trackers {
			if x.Connected {
				n++
			}
		}
		connected <- n
	})
	if n := <-connected; n != trackers {
		t.Errorf("%d of %d trackers take part", n, trackers)
	}
}
