package gather

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// largeOutputs returns a batch of two outputs on a server. Each output has two partitions that are too large for an answer;
// alone handles the requests for them.
func largeOutputs(t *testing.T, alone func(w http.ResponseWriter, r *http.Request, serve http.Handler)) core.FetchBatch {
	t.Helper()
	dir := t.TempDir()
	cmd := core.FetchBatch{Fetch: 1, Job: wire.JobID{Start: 1, N: 1}, Partitions: []int{0, 1, 2}, File: filepath.Join(dir, "batches", "1")}
	var files []string
	for m := range 2 {
		file := filepath.Join(dir, fmt.Sprint("map-", m))
		writeMap(t, file, 3, func(collect func(p int, key, value []byte)) {
			for p, size := range []int{10, 2 << 20, 2 << 20} {
				collect(p, []byte("key"), make([]byte, size))
			}
		})
		files = append(files, file)
	}
	serve := shuffle.Handler(func(_ wire.JobID, m, _ int) (string, error) { return files[m], nil }, new(meter.Count))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/batch") {
			serve.ServeHTTP(w, r)
			return
		}
		alone(w, r, serve)
	}))
	t.Cleanup(server.Close)
	for m := range files {
		cmd.Outputs = append(cmd.Outputs, wire.MapOutput{Map: m, Attempt: 1000, Tracker: "t2", Addr: strings.TrimPrefix(server.URL, "http://")})
	}
	return cmd
}

func gatherBatch(t *testing.T, cmd core.FetchBatch) core.BatchDone {
	t.Helper()
	events := make(chan core.Event, 1)
	g := New(Config{OnEvent: func(ev core.Event) { events <- ev }, Log: slog.New(slog.DiscardHandler), Stall: 2 * time.Second,
		Token: func(wire.JobID) string { return "" }})
	g.FetchBatch(t.Context(), cmd)
	select {
	case ev := <-events:
		return ev.(core.BatchDone)
	case <-time.After(time.Minute):
		t.Fatal("the batch does not end")
		panic("unreachable")
	}
}

// TestLargePartitions: partitions that are too large for an answer are fetched alone.
func TestLargePartitions(t *testing.T) {
	cmd := largeOutputs(t, func(w http.ResponseWriter, r *http.Request, serve http.Handler) { serve.ServeHTTP(w, r) })
	if ev := gatherBatch(t, cmd); ev.Error != "" || len(ev.Failed) > 0 || len(ev.Runs) != 5 || ev.Ended != 2 {
		t.Errorf("%+v", ev)
	}
}

// TestLargeStalls: if a host stalls in one large partition, the batch does not wait for the others.
func TestLargeStalls(t *testing.T) {
	var requests atomic.Int64
	cmd := largeOutputs(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		requests.Add(1)
		<-r.Context().Done()
	})
	ev := gatherBatch(t, cmd)
	if !ev.Stalled || ev.DiskFailed || len(ev.Failed) != 4 || len(ev.Runs) != 1 || ev.Ended != 2 {
		t.Errorf("%+v", ev)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests for large partitions, want 1", n)
	}
}

// TestLargeAfterStall: a host that stalls in a batch is not tried again for a large partition.
func TestLargeAfterStall(t *testing.T) {
	cmd := largeOutputs(t, func(http.ResponseWriter, *http.Request, http.Handler) { t.Error("a large partition is requested") })
	whole := cmd.Outputs[0].Addr
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get("http://" + whole + strings.Replace(r.URL.RequestURI(), ",1.1000", "", 1)) // without the second output
		if err == nil {
			defer answer.Body.Close()
			_, err = io.Copy(w, answer.Body)
		}
		if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	for i := range cmd.Outputs {
		cmd.Outputs[i].Addr = strings.TrimPrefix(server.URL, "http://")
	}
	if ev := gatherBatch(t, cmd); !ev.Stalled || ev.Ended != 1 || len(ev.Failed) != 2 || len(ev.Runs) != 1 {
		t.Errorf("%+v", ev)
	}
}

// TestLargeDiskFails: if the file of a large partition cannot be written, this tracker's disk has failed, not the host.
func TestLargeDiskFails(t *testing.T) {
	cmd := largeOutputs(t, func(w http.ResponseWriter, r *http.Request, serve http.Handler) { serve.ServeHTTP(w, r) })
	if err := os.MkdirAll(cmd.File+"-0-1", 0o700); err != nil {
		t.Fatal(err)
	}
	if ev := gatherBatch(t, cmd); !ev.DiskFailed || ev.Stalled || len(ev.Failed) != 4 || len(ev.Runs) != 1 {
		t.Errorf("%+v", ev)
	}
}
