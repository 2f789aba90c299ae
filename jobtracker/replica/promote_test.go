package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// awaitVote waits until a node knows that it votes.
func (n *node) awaitVote() {
	n.t.Helper()
	n.await("its vote", func() bool {
		return slices.ContainsFunc(n.Voters(), func(v Voter) bool { return v.ID == n.cfg.ID })
	})
}

// silentPeer accepts connections and never answers.
func silentPeer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return l.Addr().String()
}

// TestSilentVoter: a job tracker that accepts connections, but never answers, does not become a
// voter: the only voter goes on alone, and removes it.
func TestSilentVoter(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.commit("before")
	one := g.leader()
	for i := range maxNonvoters {
		if err := one.AddVoter(testContext(t), Voter{fmt.Sprint("silent", i), silentPeer(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.AddVoter(testContext(t), Voter{"jt9", silentPeer(t)}); !errors.Is(err, ErrManyNonvoters) {
		t.Errorf("one more than the limit: %v", err)
	}
	for i := range 20 {
		g.commit(fmt.Sprint("entry ", i))
	}
	if len(one.Voters()) != 1 || len(one.Nonvoters()) != maxNonvoters {
		t.Errorf("voters %v, nonvoters %v", one.Voters(), one.Nonvoters())
	}
	for i := range maxNonvoters {
		if err := one.RemoveVoter(testContext(t), fmt.Sprint("silent", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(one.Nonvoters()) != 0 {
		t.Errorf("nonvoters %v after their removal", one.Nonvoters())
	}
	g.commit("after")
}

// TestManyVotersAtOnce: the limit of nonvoters holds for requests at the same time.
func TestManyVotersAtOnce(t *testing.T) {
	t.Parallel()
	one := newGroup(t, 1, nil).leader()
	ctx, answers := testContext(t), make(chan error)
	for i := range maxNonvoters + 2 {
		v := Voter{fmt.Sprint("silent", i), silentPeer(t)}
		go func() { answers <- one.AddVoter(ctx, v) }()
	}
	refused := 0
	for range maxNonvoters + 2 {
		if err := <-answers; errors.Is(err, ErrManyNonvoters) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 2 || len(one.Nonvoters()) != maxNonvoters {
		t.Errorf("%d are refused, nonvoters %v", refused, one.Nonvoters())
	}
}

// TestPromotionByNextLeader: the next leader makes a job tracker a voter that an earlier one has added.
func TestPromotionByNextLeader(t *testing.T) {
	t.Parallel()
	var resolved atomic.Value // address of jt4
	resolved.Store(silentPeer(t))
	g := newGroup(t, 3, func(c *Config) {
		c.Resolve = func(id string) string {
			if id == "jt4" {
				return resolved.Load().(string)
			}
			return ""
		}
	})
	g.commit("before")
	fourth := open(t, Config{ID: "jt4", Dir: t.TempDir()})
	var adder *node
	g.atLeader(func(l *node) error {
		adder = l
		return l.AddVoter(testContext(t), Voter{"jt4", fourth.Addr()})
	})
	adder.crash()
	g.nodes = g.others(adder)
	next := g.commit("without the leader that added it")
	if len(next.Nonvoters()) != 1 || len(next.Voters()) != 3 {
		t.Fatalf("voters %v, nonvoters %v", next.Voters(), next.Nonvoters())
	}
	resolved.Store(fourth.Addr())
	fourth.awaitVote()
	g.nodes = append(g.nodes, fourth)
	g.check(g.commitOnce("with four"))
}

// TestRounds: a nonvoter must confirm the leader's last entry, by an answer to a message of the round.
func TestRounds(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	x := make(rounds)
	for i, step := range []struct {
		confirmed confirmed
		last      uint64
		now       int
		want      bool
	}{
		{confirmed{}, 10, 1, false},          // a round begins, for entry 10
		{confirmed{10, at(0)}, 10, 2, false}, // an answer from before the round
		{confirmed{9, at(2)}, 12, 3, false},  // not far enough
		{confirmed{9, at(2)}, 12, 6, false},  // too late: another round, for entry 12
		{confirmed{11, at(7)}, 13, 7, false},
		{confirmed{12, at(8)}, 13, 8, true},
		{confirmed{12, at(8)}, 13, 9, false}, // the promotion failed: another round
	} {
		if got := x.next("jt2", step.confirmed, step.last, at(step.now), 4*time.Second); got != step.want {
			t.Errorf("step %d: %v, %v", i, got, x)
		}
	}
}

// TestRemovedNonvoter: a promotion that was decided before a removal does not undo it.
func TestRemovedNonvoter(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.commit("before")
	one := g.leader()
	if err := one.AddVoter(testContext(t), Voter{"jt2", silentPeer(t)}); err != nil {
		t.Fatal(err)
	}
	servers := one.instance().raft.GetConfiguration().Configuration().Servers
	if err := one.RemoveVoter(context.Background(), "jt2"); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if s.ID == "jt2" {
			one.promote(s)
		}
	}
	if len(one.Voters())+len(one.Nonvoters()) != 1 {
		t.Errorf("voters %v, nonvoters %v", one.Voters(), one.Nonvoters())
	}
}
