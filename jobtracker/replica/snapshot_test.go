package replica

import (
	"fmt"
	"testing"
)

// A leader that was cut off with entries of its own, past the snapshot that the
// others have meanwhile taken, comes back. Raft alone sends it that snapshot over
// and over (hashicorp/raft#697).
func TestSnapshotOverConflict(t *testing.T) {
	net := newLinks()
	g := newGroup(t, 3, func(c *Config) {
		net.join(c)
		c.SnapshotEntries, c.TrailingEntries, c.segmentSize = 8, 1, 512
	})
	net.know(g.nodes...)
	old := g.commit("before")
	net.isolate(old.cfg.ID, true)
	for i := range 60 {
		old.Propose(fmt.Sprint("lost ", i), []byte(fmt.Sprint("lost ", i)))
	}
	old.await("deposition", func() bool { return old.term == 0 })
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
