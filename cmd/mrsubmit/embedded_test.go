package main

import (
	"context"
	"io"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// running is a cluster on which a job runs before it succeeds.
type running struct{ recorder }

func (r *running) Watch(_ context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		for _, state := range []wire.State{wire.Running, wire.Succeeded} {
			if !yield([]wire.JobStatus{{ID: ids[0], Name: "job", State: state}}, nil) {
				return
			}
		}
	}
}

// TestEmbeddedPrints: while an embedded cluster prints what attempts print, the display erases no lines of the terminal.
func TestEmbeddedPrints(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"false", "true"} {
		var stderr strings.Builder
		tool := &tool{stdout: io.Discard, stderr: &stderr, width: func() int { return 80 }, getenv: func(string) string { return "" },
			embedded: func(ctx context.Context, sub *wire.Submission, shown bool) (*cluster, error) {
				c, err := embeddedCluster(ctx, sub, shown)
				if err != nil {
					return nil, err
				}
				if err := c.close(); err != nil {
					return nil, err
				}
				return &cluster{Cluster: new(running), files: dfs.Mux{"file": local.New()}, staging: "file://" + t.TempDir(), prints: c.prints,
					close: func() error { return nil }}, nil
			}}
		code := tool.main(t.Context(), []string{"run", "-D", "quern.embedded.output=" + value, exe, "-input", exe, "-output", t.TempDir() + "/out"})
		if erases := strings.Contains(stderr.String(), "\x1b["); code != exitDone || erases != (value == "false") {
			t.Errorf("quern.embedded.output=%s: exit code %d, the display erases lines: %v\n%q", value, code, erases, stderr.String())
		}
	}
}
