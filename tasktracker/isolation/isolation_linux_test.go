package isolation

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	Enter()
	os.Exit(m.Run())
}

// TestProbe: a probe performs the whole setup, or says what prevents it.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	hidden := filepath.Join(dir, "data")
	c := Config{Hidden: []string{hidden}}
	if err := c.Probe(filepath.Join(hidden, "run", "probe")); err != nil {
		t.Skipf("this machine does not isolate jobs: %v", err)
	}
}
