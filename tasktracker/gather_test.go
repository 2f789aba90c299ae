package tasktracker

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// peers are shuffle services that are of no use, each in its way.
var peers = map[string]func(http.ResponseWriter, *http.Request){
	"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"trickles": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		w.Header().Set("Quern-Records", "10")
		w.Header().Set("Quern-Digest", "0000000000000001")
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	},
	"resets": func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	},
}

// TestUselessPeers: a peer that hangs, trickles or resets is complained of, and
// what others have is gathered meanwhile.
func TestUselessPeers(t *testing.T) {
	for name, serve := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(serve)}
			go server.Serve(listener)
			defer server.Close()
			good := startTracker(t, "good", t.TempDir())
			var outputs []wire.MapOutput
			const each = 5
			for m := range each {
				outputs = append(outputs, *good.succeed(wire.Map, m, doMap).Output)
			}
			for m := range each {
				outputs = append(outputs, wire.MapOutput{
					Map: each + m, Attempt: 1000, Tracker: "bad", Addr: listener.Addr().String(), Digest: uint64(m + 1), Bytes: 10,
				})
			}
			l := startUnwelcome(t, Config{ID: "t1", Dir: t.TempDir(), fetchStall: 300 * time.Millisecond})
			l.connect(1)
			l.tell(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2 * each})
			l.tell(&wire.Outputs{Epoch: 1, Job: job1, Outputs: outputs})
			lost := make(map[int]bool)
			gathered := 0
			for len(lost) < each || gathered < each {
				m, open := <-l.heardWithin(deadline)
				if !open {
					t.Fatalf("gathered %d, lost %v", gathered, lost)
				}
				switch m := m.(type) {
				case *wire.OutputLost:
					if m.Corrupt || m.Map < each || strings.Contains(m.Reason, "corrupt") {
						t.Errorf("lost: %+v", m)
					}
					lost[m.Map] = true
				case *wire.HomeReport:
					gathered = max(gathered, m.Maps)
				}
			}
		})
	}
}
