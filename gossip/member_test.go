package gossip

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

func TestMemberRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Member{
			ID:      rapid.StringN(1, 20, 80).Draw(t, "id"),
			Role:    rapid.SampledFrom([]Role{JobTracker, TaskTracker, 9}).Draw(t, "role"),
			HTTP:    rapid.StringN(0, 10, 40).Draw(t, "http"),
			Raft:    rapid.StringN(0, 10, 40).Draw(t, "raft"),
			Expect:  rapid.IntRange(0, 9).Draw(t, "expect"),
			Cluster: rapid.StringN(0, 10, 40).Draw(t, "cluster"),
			Voter:   rapid.Bool().Draw(t, "voter"),
			Ballot:  rapid.StringN(0, 10, 40).Draw(t, "ballot"),
			Started: rapid.Int64().Draw(t, "started"),
		}
		meta, err := encodeMember(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeMember(meta)
		if err != nil || got != m {
			t.Fatalf("%+v, %v\nfrom %+v", got, err, m)
		}
	})
}

func FuzzMember(f *testing.F) {
	meta, err := encodeMember(Member{ID: "a", Role: JobTracker, HTTP: "h:1", Expect: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta)
	f.Add([]byte{metaVersion})
	f.Add([]byte{metaVersion + 1, 0x80})
	f.Fuzz(func(t *testing.T, meta []byte) {
		var m Member
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(meta), func() { m, err = decodeMember(meta) })
		if err != nil {
			return
		}
		again, err := encodeMember(m)
		if err != nil {
			return // too long to encode
		}
		if got, err := decodeMember(again); err != nil || got != m {
			t.Fatalf("%+v, %v\nfrom %+v", got, err, m)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add(encodeCheck(checkMessage{From: "a", Nonce: 1, By: byUDP}))
	f.Add([]byte{metaVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, msg []byte) {
		var a checkMessage
		var ok bool
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(msg), func() { a, ok = decodeCheck(msg) })
		if !ok {
			return
		}
		if got, ok := decodeCheck(encodeCheck(a)); !ok || got != a {
			t.Fatalf("%+v, %v\nfrom %+v", got, ok, a)
		}
	})
}

// TestFind: Find returns the same members as Members, and no others.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) Member {
			return Member{
				Role:    rapid.SampledFrom([]Role{JobTracker, TaskTracker}).Draw(t, what+"'s role"),
				ID:      rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, what+"'s id"),
				Started: rapid.Int64Range(1, 1<<40).Draw(t, what+"'s start"),
			}
		}
		g := &Gossip{self: draw("its own"), nodes: make(map[string]*node)}
		for i := range rapid.IntRange(0, 8).Draw(t, "others") {
			what := fmt.Sprint("other ", i)
			g.nodes[what] = &node{Member: draw(what), suspect: rapid.Bool().Draw(t, what+" is suspected")}
		}
		members := g.Members()
		for _, role := range []Role{JobTracker, TaskTracker} {
			for _, id := range []string{"a", "b", "c"} {
				i := slices.IndexFunc(members, func(m Member) bool { return m.Role == role && m.ID == id })
				got, ok := g.Find(role, id)
				// If two started at the same time, either is right.
				if ok != (i >= 0) || ok && (got.Suspect != members[i].Suspect || got.Started != members[i].Started) {
					t.Fatalf("%s %s: %+v, %v; members %+v", role, id, got, ok, members)
				}
			}
		}
	})
}

// alone returns a process without memberlist.
func alone(self Member) *Gossip {
	return &Gossip{
		log: slog.New(slog.DiscardHandler), self: self, nodes: make(map[string]*node), lostAddrs: make(map[string]bool),
		foreign: make(map[string]Member), changed: make(chan struct{}), update: make(chan struct{}, 1),
	}
}

// TestUpdate: a process may change its description, but not its role, its id and the time of its
// start.
func TestUpdate(t *testing.T) {
	self := Member{ID: "a", Role: JobTracker, Started: 7}
	for what, c := range map[string]struct {
		to, want Member
		ok       bool
	}{
		"cluster": {Member{ID: "a", Role: JobTracker, Started: 7, Cluster: "x"}, Member{ID: "a", Role: JobTracker, Started: 7, Cluster: "x"}, true},
		"start":   {Member{ID: "a", Role: JobTracker, Started: 8, Cluster: "x"}, Member{ID: "a", Role: JobTracker, Started: 7, Cluster: "x"}, true},
		"id":      {Member{ID: "b", Role: JobTracker, Started: 7}, self, false},
		"role":    {Member{ID: "a", Role: TaskTracker, Started: 7}, self, false},
	} {
		g := alone(self)
		if err := g.Update(func(Member) Member { return c.to }); (err == nil) != c.ok || g.Self() != c.want {
			t.Errorf("%s: %+v, %v, want %+v", what, g.Self(), err, c.want)
		}
	}
}

// TestForeignIsBounded: of many job trackers of other clusters, only some are remembered.
func TestForeignIsBounded(t *testing.T) {
	g := alone(Member{ID: "a", Role: JobTracker, Cluster: "one"})
	for i := range 3 * maxForeign {
		m := Member{ID: fmt.Sprint(i), Role: JobTracker, Cluster: "other"}
		if err := g.checkCluster(m, fmt.Sprint("h:", i)); !errors.Is(err, errOtherCluster) {
			t.Errorf("number %d: %v", i, err)
		}
	}
	if n := len(g.Foreign()); n != maxForeign {
		t.Errorf("%d are remembered, want %d", n, maxForeign)
	}
}

// TestDuplicateIsOld: a process counts as a duplicate when it was a member for some time and is not
// suspected. A change of its description does not change that.
func TestDuplicateIsOld(t *testing.T) {
	g := alone(Member{ID: "a", Role: JobTracker})
	describe := func(cluster string) *node {
		meta, err := encodeMember(Member{ID: "a", Role: JobTracker, Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		g.addMember(&memberlist.Node{Name: "other", Meta: meta})
		return g.nodes["other"]
	}
	check := func(what string, want bool) {
		t.Helper()
		if m, ok := g.Duplicate(); ok != want {
			t.Errorf("%s: %+v, %v", what, m, ok)
		}
	}
	other := describe("")
	check("a new member", false)
	other.since = time.Now().Add(-duplicateAge)
	check("an old member", true)
	describe("x")
	check("after a change", true)
	g.setSuspect("other", true)
	check("suspected", false)
}

// TestAnswersGoOn: a process answers questions for as long as it runs.
func TestAnswersGoOn(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	b := startProcess(t, taskTracker("b"), a.Addr())
	a.awaitIDs(t, "a", "b")
	timeout := time.After(deadline)
	for n := range uint64(2 * maxAnswers) {
		result := new(checkResult)
		b.checks.mu.Lock()
		b.checks.waiting[n] = result
		b.checks.mu.Unlock()
		a.NotifyMsg(encodeCheck(checkMessage{From: b.name, Nonce: n, By: byTCP}))
		for !b.resultOf(result).answered {
			select {
			case <-time.After(time.Millisecond):
			case <-timeout:
				t.Fatalf("question %d was not answered", n)
			}
		}
	}
}
