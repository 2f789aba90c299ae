package tasktracker

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/tasktracker/token"
)

// TestEndWhileVerifying: if a tracker ends before it has verified an output, the output stays.
func TestEndWhileVerifying(t *testing.T) {
	disk := t.TempDir()
	dir := filepath.Join(disk, core.JobsDir, "attempt")
	if err := os.MkdirAll(dir, 0o777); err != nil { // without a report it cannot be verified
		t.Fatal(err)
	}
	l := newLoop(Config{Dir: disk, Disks: []string{disk}, Service: Service{Advertise: "here:1"}, Logger: slog.New(slog.DiscardHandler)}, nil, nil, new(token.Store), core.Config{})
	l.ctx, l.cancel = context.WithCancelCause(t.Context())
	l.cancel(nil)
	l.restore([]disks.Leftover{{Dir: dir}})
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the output is gone: %v", err)
	}
	if n := len(l.inbox); n != 0 {
		t.Errorf("the core got %d events", n)
	}
}
