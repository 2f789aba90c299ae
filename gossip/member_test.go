package gossip

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
		m, err := decodeMember(meta)
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
		a, ok := decodeCheck(msg)
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
