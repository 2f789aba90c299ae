package tasktracker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/tasktracker/token"
)

// TestEndWhileVerifying: if a tracker ends while it verifies an output, the output stays.
func TestEndWhileVerifying(t *testing.T) {
	disk := t.TempDir()
	dir := filepath.Join(disk, core.JobsDir, "attempt")
	report := filepath.Join(dir, core.ReportFile)
	if err := errors.Join(os.MkdirAll(dir, 0o777), syscall.Mkfifo(report, 0o666)); err != nil {
		t.Fatal(err)
	}
	l := newLoop(Config{Dir: disk, Disks: []string{disk}, Service: Service{Advertise: "here:1"}, Logger: slog.New(slog.DiscardHandler)}, nil, nil, new(token.Store), core.Config{})
	l.ctx, l.cancel = context.WithCancelCause(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.restore([]disks.Leftover{{Dir: dir}})
	}()
	f, err := os.OpenFile(report, os.O_WRONLY, 0) // returns when restore has opened it
	if err != nil {
		t.Fatal(err)
	}
	l.cancel(nil)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	receive(t, ended, "the end of the verification")
	if _, err := os.Stat(report); err != nil {
		t.Errorf("the output is gone: %v", err)
	}
	if n := len(l.inbox); n != 0 {
		t.Errorf("the core got %d events", n)
	}
}
