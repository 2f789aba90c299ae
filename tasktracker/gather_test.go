package tasktracker

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// badPeers are shuffle services that fail, each in another way.
var badPeers = map[string]func(http.ResponseWriter, *http.Request){
	"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"trickles": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		w.Header().Set("Quern-Records", "10")
		w.Header().Set("Quern-Digest", "0000000000000001")
		tick := time.NewTicker(500 * time.Millisecond)
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
	"refuses": func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the token does not belong to this job: "+r.Header.Get("Authorization"), http.StatusForbidden)
	},
}

// TestBadPeers: outputs at a failing peer are reported lost. Outputs of other peers are
// fetched meanwhile.
func TestBadPeers(t *testing.T) {
	for name, serve := range badPeers {
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
			l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), hooks: hooks{fetchStall: 3 * time.Second}})
			l.connect(1)
			l.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2 * each})
			l.send(wire.OutputsOf(1, job1, outputs...))
			lost := make(map[int]bool)
			gathered := 0
			for len(lost) < each || gathered < each {
				m, open := <-l.receivedWithin(deadline)
				if !open {
					t.Fatalf("gathered %d, lost %v", gathered, lost)
				}
				switch m := m.(type) {
				case *wire.OutputLost:
					if m.Corrupt || m.Map < each || strings.Contains(m.Reason, "corrupt") {
						t.Errorf("lost: %+v", m)
					}
					if refused := strings.Contains(m.Reason, "the server refuses the token: 403 Forbidden: the token does not belong to this job: Bearer "+tokenOf(job1)); refused != (name == "refuses") {
						t.Errorf("lost: %s", m.Reason)
					}
					lost[m.Map] = true
				case *wire.HomeReport:
					gathered = max(gathered, m.Maps)
				}
			}
		})
	}
}

// TestSharedRate: the job with the highest share is fetched first, even if earlier fetches
// of another job have reached the limit.
func TestSharedRate(t *testing.T) {
	t.Parallel()
	output, o := mapOutput(t, 256<<10)
	peer := httptest.NewServer(shuffle.Handler(func(wire.JobID, int, int) (string, error) { return output, nil }, new(meter.Count)))
	defer peer.Close()
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), ShuffleRate: 1 << 20})
	l.connect(1)
	begin := func(job, maps int) {
		outputs := make([]wire.MapOutput, maps)
		for m := range outputs {
			outputs[m] = wire.MapOutput{
				Map: m, Attempt: 1000, Tracker: "other", Addr: peer.Listener.Addr().String(), Digest: o.Digest, Bytes: o.Bytes,
			}
		}
		l.send(&wire.SetHome{Epoch: 1, Job: jobN(job), Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: maps})
		l.send(wire.OutputsOf(1, jobN(job), outputs...))
	}
	begin(1, 40)
	l.send(&wire.Shares{Epoch: 1, Shares: []wire.JobShare{{Job: jobN(2), Share: 1}}})
	begin(2, 2)
	var complete []int
	for len(complete) < 2 {
		if r := await(l, func(r *wire.HomeReport) bool { return r.Complete }); r.Digest == o.Digest*uint64(r.Maps) {
			complete = append(complete, r.Job.N)
		}
	}
	if complete[0] != 2 {
		t.Errorf("jobs are gathered in the order %v", complete)
	}
}

// mapOutput writes a map output of one partition.
func mapOutput(t *testing.T, bytes int) (file string, o shuffle.Output) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "output")
	c, err := shuffle.NewCollector(shuffle.Config{Partitions: 1, Memory: 1 << 20, Dir: t.TempDir(), File: file})
	if err != nil {
		t.Fatal(err)
	}
	value, random := make([]byte, 1<<10), rand.NewChaCha8([32]byte{})
	for range bytes >> 10 {
		random.Read(value)
		if err := c.Collect(0, value[:8], value); err != nil {
			t.Fatal(err)
		}
	}
	if o, err = c.Close(); err != nil {
		t.Fatal(err)
	}
	return file, o
}
