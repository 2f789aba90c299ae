package replica

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestThreeVoters(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	for i := range 50 {
		g.commit(fmt.Sprint("entry ", i))
	}
	g.check("entry 49")
	var first *node
	waitFor(t, "a leader that says so", func() bool {
		first = g.leader()
		id, ok := first.Leader()
		return ok && id == first.cfg.ID
	})
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

// TestStored: without proposals, replicas store no byte. An entry adds only its own bytes.
func TestStored(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.check(g.commitOnce("first"))
	before := make(map[*node]int64)
	for _, n := range g.nodes {
		_, before[n] = n.Stored()
	}
	follower := g.others(g.leader())[0].instance().raft
	for range 10 { // heartbeats of the leader
		last := follower.LastContact()
		waitFor(t, "a heartbeat", func() bool { return follower.LastContact() != last })
	}
	for _, n := range g.nodes {
		if _, bytes := n.Stored(); bytes != before[n] {
			t.Errorf("%s stored %d bytes without a proposal", n.cfg.ID, bytes-before[n])
		}
	}
	g.check(g.commitOnce("second"))
	for _, n := range g.nodes {
		// On a very slow machine the entry may have been proposed more than once.
		if _, bytes := n.Stored(); bytes == before[n] || (bytes-before[n])%int64(len("second")) != 0 {
			t.Errorf("%s stored %d bytes for an entry of %d", n.cfg.ID, bytes-before[n], len("second"))
		}
	}
}

// waitFor polls a condition that has no event.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(time.Millisecond); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// TestFactsDiffer: a replica with other facts than its leader fails, and the others continue.
func TestFactsDiffer(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) {
		c.checkEvery = 4
		if c.ID == "jt3" {
			c.Timeout = patience // so that it never leads
		}
	})
	differing := g.nodes[2]
	g.check(g.commitOnce("before"))
	differing.mu.Lock()
	differing.applied[0] = "something else"
	differing.mu.Unlock()
	for i := range 20 {
		g.commit(fmt.Sprint("entry ", i), g.others(differing)...)
	}
	differing.await("the failure", func() bool { return differing.failure != nil })
	if !strings.Contains(differing.failure.Error(), "checksum") {
		t.Errorf("failed with %v", differing.failure)
	}
	for _, n := range g.others(differing) {
		n.await("a request for its facts", func() bool { return n.failure != nil || n.snapshots > 0 })
		if n.failure != nil {
			t.Errorf("%s failed: %v", n.cfg.ID, n.failure)
		}
	}
}

func (g *group) commitOnce(entry string) string {
	g.t.Helper()
	g.commit(entry)
	return entry
}

// TestLeaderKilledAtAnyEntry kills leaders before or after they answer a proposal. Acknowledged
// entries stay, and all replicas have the same entries. An entry that was proposed again may be
// there twice. Row 1 of docs/promises.md, for the log.
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

// atLeader calls do with the leader. If the leader has changed meanwhile, it calls do again.
func (g *group) atLeader(do func(n *node) error) {
	g.t.Helper()
	for {
		n := g.leader()
		err := do(n)
		if err == nil {
			return
		}
		if !errors.Is(err, ErrNotLeader) {
			g.t.Fatal(err)
		}
		n.await("another leader", func() bool { return !n.leads() })
	}
}

// TestVoters: a new voter catches up. A job tracker that does not answer is not added. After a
// voter is removed, even the leader, the others commit without it.
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
		if err := n.AddVoter(testContext(t), Voter{id, n.Addr()}); !errors.Is(err, ErrNotLeader) {
			t.Errorf("%s adds itself: %v", id, err)
		}
		g.atLeader(func(l *node) error { return l.AddVoter(testContext(t), Voter{id, n.Addr()}) })
		g.nodes = append(g.nodes, n)
		n.awaitVote()
		g.check(g.commitOnce(id + " is here"))
	}
	leader := g.leader()
	if err := leader.AddVoter(testContext(t), Voter{"jt4", "127.0.0.1:1"}); err == nil || len(leader.Voters()) != 3 {
		t.Errorf("added a job tracker that does not answer; voters %v", leader.Voters())
	}
	g.atLeader(func(l *node) error {
		err := l.RemoveVoter(testContext(t), "jt9")
		if errors.Is(err, ErrNotVoter) {
			return nil
		}
		return cmp.Or(err, errors.New("removed a job tracker that is not a voter"))
	})
	remove := func(n *node) {
		g.atLeader(func(l *node) error {
			err := l.RemoveVoter(testContext(t), n.cfg.ID)
			if errors.Is(err, ErrNotVoter) { // an earlier leader has removed it, but did not get the answer
				return nil
			}
			return err
		})
	}
	leader = g.leader()
	remove(leader)
	g.nodes = g.others(leader)
	next := g.commit("without the first leader")
	if got := len(next.Voters()); got != 2 {
		t.Errorf("%d voters after one was removed", got)
	}
	next = g.leader()
	remove(g.others(next)[0])
	g.nodes = []*node{next}
	g.commit("alone")
	if err := next.RemoveVoter(testContext(t), next.cfg.ID); err == nil {
		t.Error("removed the last voter")
	}
}

// TestResolve: the others find a job tracker that restarts at another address, because each dial
// resolves the address.
func TestResolve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	newAddrs := make(map[string]string)
	g := newGroup(t, 3, func(c *Config) {
		c.Resolve = func(id string) string {
			mu.Lock()
			defer mu.Unlock()
			return newAddrs[id]
		}
	})
	g.commit("before")
	n := g.others(g.leader())[0]
	n.crash()
	cfg := n.cfg
	cfg.Listen = "127.0.0.1:0"
	again := open(t, cfg)
	mu.Lock()
	newAddrs[cfg.ID] = again.Addr()
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
		t.Error("an address that cannot be dialed was accepted")
	}
	if _, err := tryOpen(t, Config{ID: "jt2", Dir: t.TempDir(), Listen: n.Addr()}); err == nil {
		t.Error("an address that is in use was taken")
	}
	for i := range 20 { // bytes of another protocol must do no harm
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
