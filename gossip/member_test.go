package gossip

import (
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
			return // too long for us to say
		}
		if got, err := decodeMember(again); err != nil || got != m {
			t.Fatalf("%+v, %v\nfrom %+v", got, err, m)
		}
	})
}

func FuzzAsk(f *testing.F) {
	f.Add(encodeAsk(ask{From: "a", Nonce: 1, By: byUDP}))
	f.Add([]byte{metaVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, msg []byte) {
		a, ok := decodeAsk(msg)
		if !ok {
			return
		}
		if got, ok := decodeAsk(encodeAsk(a)); !ok || got != a {
			t.Fatalf("%+v, %v\nfrom %+v", got, ok, a)
		}
	})
}
