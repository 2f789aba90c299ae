package gather

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestExhausted: without file descriptors, neither a map output nor a disk is at fault, and the log says so once.
func TestExhausted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "map")
	part := writeMap(t, file, 1, func(collect func(p int, key, value []byte)) { collect(0, []byte("k"), []byte("v")) }).Partitions[0]
	var log bytes.Buffer
	events := make(chan core.Event, 1)
	g := New(Config{OnEvent: func(ev core.Event) { events <- ev }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Token: func(wire.JobID) string { return "" }})
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	free, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	first := uint64(free.Fd())
	if err := errors.Join(free.Close(), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: first, Max: before.Max})); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home", "file")
	lookUp := g.lookUp(core.Fetch{File: file})
	fetch := g.fetch(t.Context(), core.Fetch{File: home})
	batch := g.fetchBatch(t.Context(), core.FetchBatch{File: home, Local: []string{file}})
	g.Merge(t.Context(), core.Merge{Runs: []wire.Segment{{File: file, Offset: part.Offset, Length: part.Length}}, File: home})
	merge := (<-events).(core.MergeDone)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	g.Stop()
	for what, ev := range map[string]core.FetchDone{"look-up": lookUp, "fetch": fetch, "batch": {Error: batch.Error, DiskFailed: batch.DiskFailed, Exhausted: batch.Exhausted}} {
		if !ev.Exhausted || ev.DiskFailed || ev.Missing || ev.Corrupt || ev.Error == "" {
			t.Errorf("%s: %+v", what, ev)
		}
	}
	if merge.Error == "" || merge.DiskFailed || merge.Corrupt != nil {
		t.Errorf("merge: %+v", merge)
	}
	if text := log.String(); strings.Count(text, "no file descriptor") != 1 {
		t.Errorf("log %q", text)
	}
	if !shuffle.Exhausted(syscall.ENFILE) || g.exhausted(syscall.ENOSPC) {
		t.Error("which errors")
	}
}
