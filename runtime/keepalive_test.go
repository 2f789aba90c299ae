package runtime

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// stuckFS hangs in the calls that make data durable, until it is released.
type stuckFS struct {
	dfs.FS
	in       string // "close", "syncdir" or "mkdirs"
	released chan struct{}
}

type stuckWriter struct {
	dfs.Writer
	released chan struct{}
}

func (f stuckFS) Create(name string) (dfs.Writer, error) {
	w, err := f.FS.Create(name)
	if err == nil && f.in == "close" && strings.HasPrefix(dfs.Base(name), mainOutput) {
		w = stuckWriter{w, f.released}
	}
	return w, err
}

func (f stuckFS) SyncDir(name string) error {
	if f.in == "syncdir" && strings.HasPrefix(dfs.Base(name), "attempt") {
		<-f.released
	}
	return f.FS.SyncDir(name)
}

func (f stuckFS) MkdirAll(name string) error {
	if f.in == "mkdirs" {
		<-f.released
	}
	return f.FS.MkdirAll(name)
}

func (w stuckWriter) Close() error {
	<-w.released
	return w.Writer.Close()
}

// TestLongSync checks that an attempt counts as active for ten minutes while its output is
// made durable, and not longer.
func TestLongSync(t *testing.T) {
	for _, in := range []string{"close", "syncdir", "mkdirs"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := linesPlan()
				plan.Reduces = 0
				b := newTrackerSim(t, plan, Job{Maps: []MapFunc{func(t *Task, in *Split, _ Collector) error {
					out, err := t.Output("")
					if err != nil {
						return err
					}
					return out.Write([]byte("record\n"))
				}}})
				kind := wire.Map
				if in == "mkdirs" { // for the output's directory
					kind = wire.Setup
				} else {
					b.mustRun(wire.Setup, 0, nil)
				}
				b.stop()
				stuck := stuckFS{b.fs, in, make(chan struct{})}
				b.workerFS, b.progress = stuck, time.Second
				b.start()
				began := time.Now()
				var last time.Duration // when activity last grew, from the beginning
				activity := uint64(0)
				time.AfterFunc(time.Hour, func() { close(stuck.released) })
				r := b.runWatched(kind, 0, nil, func(p *wire.WorkerProgress) {
					if passed := time.Since(began); p.Activity > activity && passed < time.Hour {
						activity, last = p.Activity, passed
					}
				})
				if r.Error != "" {
					t.Errorf("the attempt failed: %s", r.Error)
				}
				if last < maxSyncTime-2*b.progress || last > maxSyncTime+2*b.progress {
					t.Errorf("its last activity is after %v, want %v", last, maxSyncTime)
				}
			})
		})
	}
}
