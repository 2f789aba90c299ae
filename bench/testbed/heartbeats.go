package testbed

import (
	"sync"
	"time"

	"github.com/quernmr/quern/wire"
)

// Heartbeats renews a lease as task trackers do, until done is closed. The keys of running are the wire.AttemptID of the
// attempts that it reports.
func Heartbeats(conn *wire.Conn, running *sync.Map, done <-chan struct{}) {
	tick := time.NewTicker(5 * time.Second / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			beat := &wire.Heartbeat{}
			for id := range running.Range {
				beat.Attempts = append(beat.Attempts, wire.Report{Attempt: id.(wire.AttemptID), State: wire.AttemptRunning})
			}
			_ = conn.Send(beat) // the receiver notices the end of the connection
		case <-done:
			return
		}
	}
}
