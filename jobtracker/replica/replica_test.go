package replica

import (
	"errors"
	"fmt"
	"testing"
)

func TestThreeVoters(t *testing.T) {
	g := newGroup(t, 3, nil)
	for i := range 50 {
		g.commit(fmt.Sprint("entry ", i))
	}
	g.check("entry 49")
	first := g.leader()
	if id, ok := first.Leader(); !ok || id != first.cfg.ID {
		t.Errorf("%s leads and says %q, %v", first.cfg.ID, id, ok)
	}
	for _, n := range g.nodes {
		if len(n.Voters()) != 3 || !n.HasState() {
			t.Errorf("%s knows the voters %v", n.cfg.ID, n.Voters())
		}
		if err := n.Bootstrap(n.Voters()); !errors.Is(err, ErrHasState) {
			t.Errorf("a second bootstrap: %v", err)
		}
	}
	first.crash()
	rest := g.others(first)
	second := g.commit("after the crash", rest...)
	if second == first {
		t.Error("the dead leader leads")
	}
	g.nodes[0], g.nodes[1], g.nodes[2] = open(t, first.cfg), rest[0], rest[1]
	g.check("after the crash")
}

// Nothing is stored while nothing is proposed, and an entry costs what it holds.
func TestStored(t *testing.T) {
	g := newGroup(t, 3, nil)
	g.check(g.commitOnce("first"))
	before := make(map[*node]int64)
	for _, n := range g.nodes {
		_, before[n] = n.Stored()
	}
	g.check(g.commitOnce("second"))
	for _, n := range g.nodes {
		if _, bytes := n.Stored(); bytes-before[n] != int64(len("second")) {
			t.Errorf("%s stored %d bytes for an entry of %d", n.cfg.ID, bytes-before[n], len("second"))
		}
	}
}

func (g *group) commitOnce(entry string) string {
	g.t.Helper()
	g.commit(entry)
	return entry
}
