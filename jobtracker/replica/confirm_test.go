package replica

import "testing"

// TestConfirm: only a leader that reaches a majority is confirmed, with its term. Row 45 of
// docs/promises.md.
func TestConfirm(t *testing.T) {
	t.Parallel()
	network := newLinks()
	g := newGroup(t, 3, network.join)
	network.setAddrs(g.nodes...)
	g.check(g.commitOnce("first"))
	confirm := func(n *node) uint64 {
		const calls = 3
		terms := make(chan uint64, calls)
		for range calls {
			n.Confirm(func(term uint64) { terms <- term })
		}
		term := <-terms
		for range calls - 1 {
			<-terms
		}
		return term
	}
	leader := g.leader()
	for confirm(leader) == 0 { // on a busy machine another one may lead now
		leader = g.leader(g.commit("again"))
	}
	for _, n := range g.others(leader) {
		if term := confirm(n); term != 0 && term == confirm(leader) {
			t.Errorf("%s and %s are both confirmed in term %d", n.cfg.ID, leader.cfg.ID, term)
		}
	}
	network.isolate(leader.cfg.ID, true)
	if term := confirm(leader); term != 0 {
		t.Errorf("a leader without a majority is confirmed in term %d", term)
	}
	network.isolate(leader.cfg.ID, false)
	g.check(g.commitOnce("last"))
}
