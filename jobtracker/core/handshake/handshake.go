// Package handshake decides how the leader answers a task tracker that opens a stream, until the
// leader welcomes or refuses the tracker.
//
//	Hello --> judge --> Ignore     the stream repeats its Hello
//	                    Refuse     the tracker cannot join, for the given reason; the stream ends
//	                    AskProof   the tracker must prove that it sees the staging directory: it
//	                               reads the nonce there and sends it in a second Hello, or
//	                               sends NoStaging
//	                    Register   the leader must register the process in the log
//	                    Welcome    the process is registered
//
// [Streams] holds the streams between their first Hello and their end or welcome. When a log entry
// registers a tracker or ends its incarnation, [Streams.Waiting] lists the streams that the
// leader must decide on again.
//
// Invariants
//
//	H1  judge depends on its arguments only, and changes nothing.
//	H2  Register and Welcome come only after the proof, if the cluster has a nonce.
//	H3  A tracker id belongs to one process at a time: the leader refuses another process while
//	    it hears from the first one.
//
// Package core calls it on the leader alone, from one goroutine, and carries out the verdicts: it
// sends, closes, proposes, and binds a welcomed stream to its tracker.
package handshake

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Stream identifies a connection of a tracker. No number is used twice.
type Stream uint64

// Action is the leader's answer to a Hello.
type Action int

// The package comment explains the actions.
const (
	Ignore Action = iota
	Refuse
	AskProof
	Register
	Welcome
)

// Verdict is the answer to a message from a tracker that is not welcomed yet.
type Verdict struct {
	Action Action
	Reason string // for Refuse
	File   string // for AskProof: URL of the nonce
}

func refuse(format string, args ...any) Verdict {
	return Verdict{Action: Refuse, Reason: fmt.Sprintf(format, args...)}
}

// LeaderView is the leader's state when a Hello arrives.
type LeaderView struct {
	Boot     facts.Bootstrapped // first fact of the cluster
	Welcomed bool               // whether the stream is welcomed
	Tracker  *Tracker           // registered with the Hello's id, or nil
}

// Tracker is the leader's state of a registered tracker.
type Tracker struct {
	Process      uint64
	Connected    bool // it has a stream, and the lease has not passed since its last message
	LossProposed bool // its loss is proposed
}

// pending is a stream that is not welcomed yet.
type pending struct {
	hello      *wire.Hello // the last one
	proofAsked bool        // it waits for the nonce; else for its registration
}

// judge decides on a Hello. p is the stream's state, nil at its first Hello.
func judge(h *wire.Hello, p *pending, view LeaderView) Verdict {
	proofAsked := p != nil && p.proofAsked
	switch {
	case view.Welcomed, p != nil && !proofAsked, proofAsked && h.Nonce == "":
		return Verdict{Action: Ignore}
	case h.Version != wire.Version:
		return refuse("tracker %s speaks protocol version %d, this job tracker %d: one of them is of another build", h.Tracker, h.Version, wire.Version)
	case h.Tracker == "" || h.Process == 0 || h.MapSlots < 0 || h.ReduceSlots < 0:
		return refuse("a tracker needs an id, a process number and slots")
	}
	if h.Memory < 0 || h.Cores < 0 {
		return refuse("tracker %s offers %d bytes of memory and %d cores: they must not be negative", h.Tracker, h.Memory, h.Cores)
	}
	if most := max(h.MapSlots, h.ReduceSlots, h.Cores); most > wire.MaxSlots || h.Memory > wire.MaxMemory {
		return refuse("tracker %s offers %d slots or cores of a kind and %d bytes of memory, at most %d and %d are possible", h.Tracker, most, h.Memory, wire.MaxSlots, int64(wire.MaxMemory))
	}
	for _, x := range []struct{ what, name string }{{"id", h.Tracker}, {"host", h.Host}, {"address", h.Addr}, {"rack", h.Rack}} {
		if len(x.name) > wire.MaxName { // the log keeps these
			return refuse("a tracker's %s has %d bytes, at most %d", x.what, len(x.name), wire.MaxName)
		}
	}
	switch {
	case view.Tracker != nil && view.Tracker.Process != h.Process && view.Tracker.Connected:
		return refuse("tracker id %s is in use by another process", h.Tracker)
	case view.Boot.Nonce != "" && h.Nonce != view.Boot.Nonce && proofAsked:
		return notShared(h.Tracker, "the nonce there is not this cluster's", view.Boot)
	case view.Boot.Nonce != "" && h.Nonce != view.Boot.Nonce:
		return Verdict{Action: AskProof, File: NonceFile(view.Boot.Staging, view.Boot.Cluster)}
	case view.Tracker != nil && view.Tracker.Process == h.Process && !view.Tracker.LossProposed:
		return Verdict{Action: Welcome}
	}
	return Verdict{Action: Register}
}

func notShared(tracker, why string, boot facts.Bootstrapped) Verdict {
	return refuse("staging directory %s is not shared with tracker %s: %s", boot.Staging, tracker, why)
}

// NonceFile returns the URL of the file with a cluster's nonce.
func NonceFile(staging, cluster string) string {
	return staging + "/" + wire.StagingClusters + "/" + cluster
}

// Streams holds the streams that are not welcomed yet. The caller deletes a stream when it is
// welcomed or ends.
type Streams map[Stream]*pending

// Hello decides on a Hello, and stores the state of the stream for its next message.
func (s Streams) Hello(id Stream, h *wire.Hello, view LeaderView) Verdict {
	v := judge(h, s[id], view)
	if v.Action == AskProof || v.Action == Register {
		s[id] = &pending{hello: h, proofAsked: v.Action == AskProof}
	}
	return v
}

// NoStaging refuses a tracker that could not read the nonce.
func (s Streams) NoStaging(id Stream, why string, boot facts.Bootstrapped) Verdict {
	p := s[id]
	if p == nil {
		return Verdict{Action: Ignore}
	}
	return notShared(p.hello.Tracker, why, boot)
}

// Waiting is a stream with a tracker that waits for its registration.
type Waiting struct {
	Stream Stream
	Hello  *wire.Hello
}

// Waiting lists the streams with this tracker id that wait for its registration, in order.
func (s Streams) Waiting(tracker string) (list []Waiting) {
	for id, p := range s {
		if !p.proofAsked && p.hello.Tracker == tracker {
			list = append(list, Waiting{id, p.hello})
		}
	}
	slices.SortFunc(list, func(a, b Waiting) int { return cmp.Compare(a.Stream, b.Stream) })
	return list
}
