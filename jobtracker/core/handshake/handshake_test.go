package handshake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// boot is the first fact of a cluster with a nonce: trackers must prove that they see the staging
// directory.
var boot = facts.Bootstrapped{Cluster: "c", Staging: "mem://s", Nonce: "n"}

// hello makes the Hello of process 7 of tracker t, with the nonce.
func hello(change func(*wire.Hello)) *wire.Hello {
	h := &wire.Hello{Version: wire.Version, Tracker: "t", Process: 7, Nonce: "n"}
	if change != nil {
		change(h)
	}
	return h
}

// TestVerdicts checks the verdict on each kind of Hello.
func TestVerdicts(t *testing.T) {
	long := strings.Repeat("x", wire.MaxName+1)
	unread := hello(func(h *wire.Hello) { h.Nonce = "" })
	old := hello(func(h *wire.Hello) { h.Nonce = "old" })
	proofAsked, registering := &pending{hello: unread, proofAsked: true}, &pending{hello: hello(nil)}
	same, other := Tracker{Process: 7}, Tracker{Process: 8}
	ask := Verdict{Action: AskProof, File: "mem://s/" + wire.StagingClusters + "/c"}
	refused := func(reason string) Verdict { return Verdict{Action: Refuse, Reason: reason} }
	for _, c := range []struct {
		what  string
		hello *wire.Hello
		state *pending
		view  LeaderView // without Boot
		want  Verdict
	}{
		{"first, with the nonce", hello(nil), nil, LeaderView{}, Verdict{Action: Register}},
		{"this process is registered", hello(nil), nil, LeaderView{Tracker: &same}, Verdict{Action: Welcome}},
		{"it has another stream", hello(nil), nil, LeaderView{Tracker: &Tracker{Process: 7, Connected: true}}, Verdict{Action: Welcome}},
		{"its loss is proposed", hello(nil), nil, LeaderView{Tracker: &Tracker{Process: 7, LossProposed: true}}, Verdict{Action: Register}},
		{"an earlier process is silent", hello(nil), nil, LeaderView{Tracker: &other}, Verdict{Action: Register}},
		{"another process is connected", hello(nil), nil, LeaderView{Tracker: &Tracker{Process: 8, Connected: true}}, refused("tracker id t is in use by another process")},
		{"another process, no proof", unread, nil, LeaderView{Tracker: &Tracker{Process: 8, Connected: true}}, refused("tracker id t is in use by another process")},

		{"first, without proof", unread, nil, LeaderView{}, ask},
		{"first, with an old nonce", old, nil, LeaderView{}, ask},
		{"registered, without proof", unread, nil, LeaderView{Tracker: &same}, ask},
		{"asked, with the nonce", hello(nil), proofAsked, LeaderView{}, Verdict{Action: Register}},
		{"asked and registered", hello(nil), proofAsked, LeaderView{Tracker: &same}, Verdict{Action: Welcome}},
		{"asked, with another nonce", old, proofAsked, LeaderView{}, refused("staging directory mem://s is not shared with tracker t: the nonce there is not this cluster's")},

		{"asked, the same again", unread, proofAsked, LeaderView{}, Verdict{}},
		{"waits, the same again", hello(nil), registering, LeaderView{}, Verdict{}},
		{"welcomed, the same again", hello(nil), nil, LeaderView{Welcomed: true, Tracker: &same}, Verdict{}},

		{"another version", hello(func(h *wire.Hello) { h.Version++ }), nil, LeaderView{}, refused(fmt.Sprintf("tracker t speaks protocol version %d, this job tracker %d: one of them is of another build", wire.Version+1, wire.Version))},
		{"no id", hello(func(h *wire.Hello) { h.Tracker = "" }), nil, LeaderView{}, refused("a tracker needs an id, a process number and slots")},
		{"no process", hello(func(h *wire.Hello) { h.Process = 0 }), nil, LeaderView{}, refused("a tracker needs an id, a process number and slots")},
		{"negative map slots", hello(func(h *wire.Hello) { h.MapSlots = -1 }), nil, LeaderView{}, refused("a tracker needs an id, a process number and slots")},
		{"negative reduce slots", hello(func(h *wire.Hello) { h.ReduceSlots = -1 }), nil, LeaderView{}, refused("a tracker needs an id, a process number and slots")},
		{"a long id", hello(func(h *wire.Hello) { h.Tracker = long }), nil, LeaderView{}, refused("a tracker's id has 1001 bytes, at most 1000")},
		{"a long host", hello(func(h *wire.Hello) { h.Host = long }), nil, LeaderView{}, refused("a tracker's host has 1001 bytes, at most 1000")},
		{"a long address", hello(func(h *wire.Hello) { h.Addr = long }), nil, LeaderView{}, refused("a tracker's address has 1001 bytes, at most 1000")},
		{"a long rack", hello(func(h *wire.Hello) { h.Rack = long }), nil, LeaderView{}, refused("a tracker's rack has 1001 bytes, at most 1000")},
	} {
		c.view.Boot = boot
		if got := judge(c.hello, c.state, c.view); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
	if got := judge(unread, nil, LeaderView{}); got.Action != Register {
		t.Errorf("a cluster without a nonce: %+v", got)
	}
}

// TestStreams checks that a stream waits for its registration only after its proof.
func TestStreams(t *testing.T) {
	s := make(Streams)
	say := func(id Stream, h *wire.Hello, want Action) {
		t.Helper()
		if v := s.Hello(id, h, LeaderView{Boot: boot}); v.Action != want {
			t.Errorf("stream %d: %+v, want %v", id, v, want)
		}
	}
	waiting := func(want ...Stream) {
		t.Helper()
		var got []Stream
		for _, w := range s.Waiting("t") {
			got = append(got, w.Stream)
			if w.Hello.Tracker != "t" || w.Hello.Nonce != "n" {
				t.Errorf("stream %d waits with %+v", w.Stream, w.Hello)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("streams %v wait, want %v", got, want)
		}
	}
	unread := hello(func(h *wire.Hello) { h.Nonce = "" })
	say(3, hello(nil), Register)
	say(2, unread, AskProof)
	say(1, hello(func(h *wire.Hello) { h.Tracker = "u" }), Register)
	waiting(3)
	say(2, unread, Ignore)
	say(2, hello(nil), Register)
	say(2, hello(nil), Ignore)
	waiting(2, 3)
	say(4, hello(func(h *wire.Hello) { h.Process = 0 }), Refuse)
	if v := s.NoStaging(4, "no such file", boot); v.Action != Ignore {
		t.Errorf("NoStaging from a refused stream: %+v", v)
	}
	if v := s.NoStaging(2, "no such file", boot); v != (Verdict{Action: Refuse, Reason: "staging directory mem://s is not shared with tracker t: no such file"}) {
		t.Errorf("NoStaging from a waiting stream: %+v", v)
	}
	delete(s, 2)
	waiting(3)
}
