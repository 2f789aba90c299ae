package replica

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
)

func TestThreeVoters(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// Row 1 of the promise table, for the log: the leader is killed after each of some
// entries, at once or when it has answered. What was acknowledged stays, and all have
// the same; an entry may be there twice when it was proposed again.
func TestLeaderKilledAtAnyEntry(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) { c.segmentSize, c.SnapshotEntries, c.TrailingEntries = 512, 6, 2 })
	var acknowledged []string
	for i := range 8 {
		for j := range i {
			acknowledged = append(acknowledged, g.commitOnce(fmt.Sprint("entry ", i, ".", j)))
		}
		leader := g.leader()
		unsure := fmt.Sprint("unsure ", i)
		leader.Propose(unsure, []byte(unsure))
		if i%2 == 0 {
			leader.await("an answer", func() bool { return leader.has(unsure) || leader.undecided[unsure] > 0 })
		}
		g.reopen(leader)
	}
	g.check(g.commitOnce("last"))
	for _, entry := range acknowledged {
		if !g.nodes[0].has(entry) {
			t.Errorf("%s was acknowledged and is lost", entry)
		}
	}
}

// A newcomer is added and catches up; one that does not answer is not; one that is
// removed, the leader itself too, has no vote.
func TestVoters(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, func(c *Config) { c.segmentSize, c.SnapshotEntries, c.TrailingEntries = 256, 4, 1 })
	for i := range 10 {
		g.commit(fmt.Sprint("entry ", i))
	}
	for _, id := range []string{"jt2", "jt3"} {
		n := open(t, Config{ID: id, Dir: t.TempDir()})
		if n.HasState() {
			t.Errorf("%s has state before it was added", id)
		}
		if err := n.AddVoter(within(t), Voter{id, n.Addr()}); !errors.Is(err, ErrNotLeader) {
			t.Errorf("%s adds itself: %v", id, err)
		}
		if err := g.leader().AddVoter(within(t), Voter{id, n.Addr()}); err != nil {
			t.Fatal(err)
		}
		g.nodes = append(g.nodes, n)
		g.check(g.commitOnce(id + " is here"))
	}
	leader := g.leader()
	if err := leader.AddVoter(within(t), Voter{"jt4", "127.0.0.1:1"}); err == nil || len(leader.Voters()) != 3 {
		t.Errorf("added one that does not answer; voters %v", leader.Voters())
	}
	if err := leader.RemoveVoter(within(t), "jt9"); err == nil {
		t.Error("removed one that is none")
	}
	if err := leader.RemoveVoter(within(t), leader.cfg.ID); err != nil {
		t.Fatal(err)
	}
	g.nodes = g.others(leader)
	next := g.commit("without the first leader")
	if got := len(next.Voters()); got != 2 {
		t.Errorf("%d voters after one was removed", got)
	}
	other := g.others(next)[0]
	if err := next.RemoveVoter(within(t), other.cfg.ID); err != nil {
		t.Fatal(err)
	}
	g.nodes = []*node{next}
	g.commit("alone")
	if err := next.RemoveVoter(within(t), next.cfg.ID); err == nil {
		t.Error("removed the last voter")
	}
}

// A job tracker that comes back at another address is found there, asked for at each
// dial.
func TestResolve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	moved := make(map[string]string)
	g := newGroup(t, 3, func(c *Config) {
		c.Resolve = func(id string) string {
			mu.Lock()
			defer mu.Unlock()
			return moved[id]
		}
	})
	g.commit("before")
	n := g.others(g.leader())[0]
	n.crash()
	cfg := n.cfg
	cfg.Listen = "127.0.0.1:0"
	again := open(t, cfg)
	mu.Lock()
	moved[cfg.ID] = again.Addr()
	mu.Unlock()
	g.nodes[slices.Index(g.nodes, n)] = again
	g.check(g.commitOnce("after"))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := open(t, Config{ID: "jt1", Dir: dir})
	if _, err := tryOpen(t, Config{ID: "jt1", Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if err := n.Bootstrap([]Voter{{"jt2", n.Addr()}}); err == nil {
		t.Error("bootstrapped without itself")
	}
	if _, err := tryOpen(t, Config{ID: "jt2", Dir: t.TempDir(), Listen: ":0"}); err == nil {
		t.Error("an address that cannot be dialled was taken")
	}
	if _, err := tryOpen(t, Config{ID: "jt2", Dir: t.TempDir(), Listen: n.Addr()}); err == nil {
		t.Error("an address that is in use was taken")
	}
	for i := range 20 { // what is no raft at all must not end it
		conn, err := net.Dial("tcp", n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		garbage := bytes.Repeat([]byte{byte(i), 0xdf, 0xff, 0xff, 0xff, byte(255 - i)}, 1000)
		conn.Write(garbage)
		conn.Close()
	}
	if err := n.Bootstrap([]Voter{{"jt1", n.Addr()}}); err != nil {
		t.Fatal(err)
	}
	(&group{t: t, nodes: []*node{n}}).commit("entry")
}
