package tasktracker

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// startIsolated starts a tracker that isolates jobs, or skips the test.
func startIsolated(t *testing.T, cfg Config) *leader {
	t.Helper()
	probe := isolation.Config{}
	if err := probe.Probe(t.TempDir() + "/probe"); err != nil {
		t.Skipf("this machine does not isolate jobs: %v", err)
	}
	cfg.Isolation.Level = isolation.Namespace
	return startContained(t, cfg)
}

// TestIsolatedWorker: a worker runs in namespaces of its own, without capabilities, and is used again.
func TestIsolatedWorker(t *testing.T) {
	l := startIsolated(t, Config{})
	for n := range 2 {
		got := l.succeed(wire.Map, n, doReport).Counters
		if pid := got.Get("pid", "self"); pid != 1 {
			t.Errorf("the worker has number %d in its namespace", pid)
		}
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got.Get("status", set+": "+strings.Repeat("0", 16)) != 1 {
				t.Errorf("the worker has capabilities: %v", got["status"])
			}
		}
	}
	l.succeed(wire.Map, 2, doMap)
}
