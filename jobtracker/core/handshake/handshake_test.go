package handshake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// boot is of a cluster whose trackers have to show that they see the staging directory.
var boot = facts.Bootstrapped{Cluster: "c", Staging: "mem://s", Nonce: "n"}

// hello is of process 7 of tracker t, which has read the nonce.
func hello(change func(*wire.Hello)) *wire.Hello {
	h := &wire.Hello{Version: wire.Version, Tracker: "t", Process: 7, Nonce: "n"}
	if change != nil {
		change(h)
	}
	return h
}

// TestVerdicts: each verdict on a Hello, and why.
func TestVerdicts(t *testing.T) {
	long := strings.Repeat("x", wire.MaxName+1)
	unread := hello(func(h *wire.Hello) { h.Nonce = "" })
	old := hello(func(h *wire.Hello) { h.Nonce = "old" })
	asked, waits := &pending{hello: unread, proofAsked: true}, &pending{hello: hello(nil)}
	same, other := Tracker{Process: 7}, Tracker{Process: 8}
	ask := Verdict{Do: AskProof, File: "mem://s/" + wire.StagingClusters + "/c"}
	no := func(reason string) Verdict { return Verdict{Do: Refuse, Reason: reason} }
	for _, c := range []struct {
		what   string
		hello  *wire.Hello
		before *pending
		known  Known // without Boot
		want   Verdict
	}{
		{"first, with the nonce", hello(nil), nil, Known{}, Verdict{Do: Register}},
		{"this process is registered", hello(nil), nil, Known{Tracker: &same}, Verdict{Do: Welcome}},
		{"it has another stream", hello(nil), nil, Known{Tracker: &Tracker{Process: 7, Heard: true}}, Verdict{Do: Welcome}},
		{"its loss is on the way", hello(nil), nil, Known{Tracker: &Tracker{Process: 7, Losing: true}}, Verdict{Do: Register}},
		{"an earlier process is silent", hello(nil), nil, Known{Tracker: &other}, Verdict{Do: Register}},
		{"another process is heard", hello(nil), nil, Known{Tracker: &Tracker{Process: 8, Heard: true}}, no("tracker id t is in use by another process")},
		{"another process, no proof", unread, nil, Known{Tracker: &Tracker{Process: 8, Heard: true}}, no("tracker id t is in use by another process")},

		{"first, without proof", unread, nil, Known{}, ask},
		{"first, with an old nonce", old, nil, Known{}, ask},
		{"registered, without proof", unread, nil, Known{Tracker: &same}, ask},
		{"asked, with the nonce", hello(nil), asked, Known{}, Verdict{Do: Register}},
		{"asked and registered", hello(nil), asked, Known{Tracker: &same}, Verdict{Do: Welcome}},
		{"asked, with another nonce", old, asked, Known{}, no("staging directory mem://s is not shared with tracker t: it read another nonce there than the cluster's")},

		{"asked, the same again", unread, asked, Known{}, Verdict{}},
		{"waits, the same again", hello(nil), waits, Known{}, Verdict{}},
		{"welcomed, the same again", hello(nil), nil, Known{Welcomed: true, Tracker: &same}, Verdict{}},

		{"another version", hello(func(h *wire.Hello) { h.Version++ }), nil, Known{}, no(fmt.Sprintf("tracker t speaks protocol version %d, this job tracker %d: one of them is of another build", wire.Version+1, wire.Version))},
		{"no id", hello(func(h *wire.Hello) { h.Tracker = "" }), nil, Known{}, no("a tracker needs an id, a process number and slots")},
		{"no process", hello(func(h *wire.Hello) { h.Process = 0 }), nil, Known{}, no("a tracker needs an id, a process number and slots")},
		{"negative map slots", hello(func(h *wire.Hello) { h.MapSlots = -1 }), nil, Known{}, no("a tracker needs an id, a process number and slots")},
		{"negative reduce slots", hello(func(h *wire.Hello) { h.ReduceSlots = -1 }), nil, Known{}, no("a tracker needs an id, a process number and slots")},
		{"a long id", hello(func(h *wire.Hello) { h.Tracker = long }), nil, Known{}, no("a tracker's id has 1001 bytes, at most 1000")},
		{"a long host", hello(func(h *wire.Hello) { h.Host = long }), nil, Known{}, no("a tracker's host has 1001 bytes, at most 1000")},
		{"a long address", hello(func(h *wire.Hello) { h.Addr = long }), nil, Known{}, no("a tracker's address has 1001 bytes, at most 1000")},
		{"a long rack", hello(func(h *wire.Hello) { h.Rack = long }), nil, Known{}, no("a tracker's rack has 1001 bytes, at most 1000")},
	} {
		c.known.Boot = boot
		if got := judge(c.hello, c.before, c.known); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
	if got := judge(unread, nil, Known{}); got.Do != Register {
		t.Errorf("a cluster without a nonce: %+v", got)
	}
}

// TestStreams: only a stream that has proved what it has to waits for its registration.
func TestStreams(t *testing.T) {
	s := make(Streams)
	say := func(id Stream, h *wire.Hello, want Action) {
		t.Helper()
		if v := s.Hello(id, h, Known{Boot: boot}); v.Do != want {
			t.Errorf("stream %d: %+v, want %v", id, v, want)
		}
	}
	waiting := func(want ...Stream) {
		t.Helper()
		var got []Stream
		for _, w := range s.Waiting("t") {
			got = append(got, w.Stream)
			if w.Hello.Tracker != "t" || w.Hello.Nonce != "n" {
				t.Errorf("on stream %d waits %+v", w.Stream, w.Hello)
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
	if v := s.NoStaging(4, "no such file", boot); v.Do != Ignore {
		t.Errorf("of a stream that was refused: %+v", v)
	}
	if v := s.NoStaging(2, "no such file", boot); v != (Verdict{Do: Refuse, Reason: "staging directory mem://s is not shared with tracker t: no such file"}) {
		t.Errorf("of a stream that waits: %+v", v)
	}
	delete(s, 2)
	waiting(3)
}
