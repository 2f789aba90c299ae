//go:build !unix

package program

import (
	"context"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// TestDriveUnsupported: a driver fails before its function is called, on systems that run no jobs.
func TestDriveUnsupported(t *testing.T) {
	err := DriveInProcess(t.Context(), bridge.Settings{}, func(context.Context, *Driving) error {
		t.Error("the driver function was called")
		return nil
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "jobs run on Linux and macOS only") {
		t.Error(err)
	}
}
