package replica

import (
	"fmt"
	"slices"
	"testing"
)

// TestSnapshotOverConflict: a leader is cut off and appends entries. Meanwhile the others take a
// snapshot, which is older than these entries. When the old leader returns, it must install the
// snapshot. Raft alone would send it again and again (hashicorp/raft#697).
func TestSnapshotOverConflict(t *testing.T) {
	t.Parallel()
	net := newLinks()
	g := newGroup(t, 3, func(c *Config) {
		net.join(c)
		c.SnapshotEntries, c.TrailingEntries, c.segmentSize = 8, 1, 512
	})
	net.setAddrs(g.nodes...)
	old := g.commit("before")
	net.isolate(old.cfg.ID, true)
	for i := range 60 {
		old.Propose(fmt.Sprint("lost ", i), []byte(fmt.Sprint("lost ", i)))
	}
	old.await("deposition", func() bool { return !old.leads() })
	rest := g.others(old)
	for i := range 20 {
		g.commit(fmt.Sprint("kept ", i), rest...)
	}
	for _, n := range rest {
		n.await("a snapshot", func() bool { return n.growth.snapshot.Load() > 8 })
	}
	net.isolate(old.cfg.ID, false)
	g.commit("after", rest...)
	g.check("after")
	old.await("a snapshot to be installed", func() bool { return old.restores > 0 })
}

// TestSnapshots: the replica takes a snapshot after a number of entries or bytes, after a time, and
// at a clean stop. The next start restores it.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"entries":    func(c *Config) { c.SnapshotEntries = 5 },
		"bytes":      func(c *Config) { c.SnapshotBytes = 50 },
		"interval":   func(c *Config) { c.SnapshotInterval = 2 * testTimeout },
		"clean stop": func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{ID: "jt1", Dir: t.TempDir(), TrailingEntries: 1, segmentSize: 256}
			change(&cfg)
			n := open(t, cfg)
			if err := n.Bootstrap([]Voter{{"jt1", n.Addr()}}); err != nil {
				t.Fatal(err)
			}
			g := &group{t: t, nodes: []*node{n}}
			for i := range 10 {
				g.commit(fmt.Sprint("entry ", i))
			}
			if name == "clean stop" {
				n.close()
			} else {
				n.await("a snapshot", func() bool { return n.growth.snapshot.Load() > 0 })
				n.crash()
			}
			want := n.list()
			n = open(t, n.cfg)
			g.nodes[0] = n
			n.await("the snapshot", func() bool { return n.restores == 1 })
			g.commit("after")
			// commit proposes an undecided entry again
			if got := slices.Compact(n.list()); !slices.Equal(got, slices.Compact(append(want, "after"))) {
				t.Errorf("has %q after the restart, had %q", got, want)
			}
		})
	}
}

// TestNoSnapshot: Close returns even if the job tracker has stopped and encodes no snapshot.
func TestNoSnapshot(t *testing.T) {
	t.Parallel()
	n := open(t, Config{ID: "jt1", Dir: t.TempDir()})
	if err := n.Bootstrap([]Voter{{"jt1", n.Addr()}}); err != nil {
		t.Fatal(err)
	}
	(&group{t: t, nodes: []*node{n}}).commit("entry")
	n.stopReading()
	<-n.stopped
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	n = open(t, n.cfg)
	n.awaitEntry("entry")
}
