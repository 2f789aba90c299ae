package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManyClusters runs 500 seeds with a binary built without the race detector. With it they
// would take a minute.
func TestManyClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("sim.TestStorms runs 500 seeds without the race detector")
	}
	bin := filepath.Join(t.TempDir(), "mrsim")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin, "cluster", "-seeds", "500", "-shrink", "60").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestCluster(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string // in the output
	}{
		{"cluster -seed 3 -seeds 2", exitDone, "2 runs"},
		{"cluster -seed 3 -keep none -v", exitDone, "leads in epoch 1"},
		{"cluster -calm", exitDone, "1 runs"},
		{"cluster -lasting -v", exitDone, " for good"},
		{"cluster -digest", exitDone, "digest "},
		{"cluster -h", exitDone, "usage: mrsim cluster"},
		{"help", exitDone, "mrsim cluster"},
		{"cluster -keep x", exitUsage, "-keep"},
		{"cluster 5", exitUsage, "unexpected argument"},
		{"cluster -nonsense", exitUsage, "nonsense"},
		{"nonsense", exitUsage, "unknown command"},
		{"", exitUsage, "Commands"},
	} {
		var out bytes.Buffer
		code := (&tool{stdout: &out, stderr: &out}).main(context.Background(), strings.Fields(c.args))
		if code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("mrsim %s: exit code %d, want %d; output %q, want %q in it", c.args, code, c.code, out.String(), c.want)
		}
	}
}
