package disks

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/core"
)

// TestProbeExhausted: without file descriptors a probe waits, since the disk may be good.
func TestProbeExhausted(t *testing.T) {
	dir, left := t.TempDir(), 3
	s, err := Claim(Config{Dir: dir, Disks: []string{dir}, Layout: datadir.Layout{Daemon: "tracker", Marker: "marker", Dirs: []string{core.JobsDir}},
		Free: func(string) (int64, error) {
			if left--; left >= 0 {
				return 0, &os.PathError{Op: "open", Path: dir, Err: syscall.EMFILE}
			}
			return 1 << 40, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r := &SpaceGuard{Disks: s}
	synctest.Test(t, func(t *testing.T) {
		if err := r.Probe(t.Context(), 0, dir); err != nil || left >= 0 {
			t.Errorf("%v after %d refusals", err, 3-left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		left = 3
		if err := r.Probe(ctx, 0, dir); !errors.Is(err, syscall.EMFILE) || left < 2 {
			t.Errorf("at the end of the task tracker: %v", err)
		}
	})
}
