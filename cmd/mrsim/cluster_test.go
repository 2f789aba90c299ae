package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

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
		{"cluster -rotating -v", exitDone, " -rotating"},
		{"cluster -lasting -rotating", exitUsage, "-lasting and -rotating exclude each other"},
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
