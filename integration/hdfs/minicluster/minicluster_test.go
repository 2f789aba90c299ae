package minicluster

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	jars, err := Fetch(t.Context())
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Jars, cfg.Dir = jars, t.TempDir()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A DataNode that is killed is missed, and is back after its restart.
func TestKillAndRestart(t *testing.T) {
	c := start(t, Config{Racks: []string{"/a", "/a", "/b", "/b"}})
	ctx, nn, dn := t.Context(), c.NameNodes[0], c.DataNodes[3]
	report, err := c.Admin(ctx, "-printTopology")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Rack: /a", "Rack: /b", dn.Addr()} {
		if !strings.Contains(report, want) {
			t.Errorf("the topology does not have %s:\n%s", want, report)
		}
	}
	if err := dn.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.LiveDataNodes(ctx, nn, 3); err != nil {
		t.Fatal(err)
	}
	if err := dn.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(ctx, nn, 4); err != nil {
		t.Fatal(err)
	}
}

// Of two NameNodes the standby one takes over what the active one has.
func TestTwoNameNodes(t *testing.T) {
	c := start(t, Config{NameNodes: 2, Racks: []string{"/a"}, Replication: 1})
	ctx := context.WithoutCancel(t.Context())
	if _, err := c.Shell(ctx, "-mkdir", "/made"); err != nil {
		t.Fatal(err)
	}
	if err := c.NameNodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Activate(ctx, c.NameNodes[1]); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(ctx, c.NameNodes[1], 1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Shell(ctx, "-ls", "/made"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Conf()); err != nil {
		t.Fatal(err)
	}
}
