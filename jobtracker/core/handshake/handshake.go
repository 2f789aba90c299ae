// Package handshake decides how the leader answers a task tracker that opens a stream, until
// the tracker is welcomed or refused.
//
//	Hello --> judge --> Ignore     the stream has said Hello before, and nothing new since
//	                    Refuse     the tracker cannot join, for the reason given; the stream ends
//	                    AskProof   the tracker has to show that it sees the staging directory: it
//	                               says Hello again, with the nonce that it has read, or NoStaging
//	                    Register   its process is to be registered in the log
//	                    Welcome    its process is registered
//
// [Streams] holds the streams between their first Hello and their end or welcome. When an
// entry of the log registers a tracker, or loses one, [Streams.Waiting] tells which streams go
// on.
//
// Invariants
//
//	H1  judge is a function of the Hello and of what is known: it changes nothing.
//	H2  Register and Welcome come only after the proof, if the cluster has a nonce.
//	H3  A tracker id belongs to one process at a time: another process is refused as long as
//	    the leader hears the first one.
//
// Package core calls it on the leader alone, from one goroutine, and carries the verdicts out:
// it sends, closes, proposes, and binds a welcomed stream to its tracker.
package handshake

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Stream names one connection of a tracker. No number is used twice.
type Stream uint64

// Action is what is to be done about a Hello.
type Action int

// The actions; the package comment says when each is due.
const (
	Ignore Action = iota
	Refuse
	AskProof
	Register
	Welcome
)

// Verdict is the answer to a message of a tracker that is not welcomed yet.
type Verdict struct {
	Action Action
	Reason string // of Refuse
	File   string // of AskProof: the URL of the nonce
}

func refuse(format string, args ...any) Verdict {
	return Verdict{Action: Refuse, Reason: fmt.Sprintf(format, args...)}
}

// Known is what the leader knows when a Hello comes.
type LeaderView struct {
	Boot     facts.Bootstrapped // of the cluster
	Welcomed bool               // the stream was
	Tracker  *Tracker           // that is registered by the Hello's id; nil: none
}

// Tracker is what the leader knows of a registered tracker.
type Tracker struct {
	Process   uint64
	Connected bool // within the lease, and it has a stream
	Losing    bool // its loss is on the way to the log
}

// pending is a stream that is not welcomed yet.
type pending struct {
	hello      *wire.Hello // the last one
	proofAsked bool        // for the proof; else it waits for its registration
}

// judge decides on a Hello. before is the stream's state, nil at its first Hello.
func judge(h *wire.Hello, before *pending, k LeaderView) Verdict {
	asked := before != nil && before.proofAsked
	switch {
	case k.Welcomed, before != nil && !asked, asked && h.Nonce == "":
		return Verdict{Action: Ignore}
	case h.Version != wire.Version:
		return refuse("tracker %s speaks protocol version %d, this job tracker %d: one of them is of another build", h.Tracker, h.Version, wire.Version)
	case h.Tracker == "" || h.Process == 0 || h.MapSlots < 0 || h.ReduceSlots < 0:
		return refuse("a tracker needs an id, a process number and slots")
	}
	for _, x := range []struct{ what, name string }{{"id", h.Tracker}, {"host", h.Host}, {"address", h.Addr}, {"rack", h.Rack}} {
		if len(x.name) > wire.MaxName { // longer than the log should keep
			return refuse("a tracker's %s has %d bytes, at most %d", x.what, len(x.name), wire.MaxName)
		}
	}
	switch {
	case k.Tracker != nil && k.Tracker.Process != h.Process && k.Tracker.Connected:
		return refuse("tracker id %s is in use by another process", h.Tracker)
	case k.Boot.Nonce != "" && h.Nonce != k.Boot.Nonce && asked:
		return notShared(h.Tracker, "it read another nonce there than the cluster's", k.Boot)
	case k.Boot.Nonce != "" && h.Nonce != k.Boot.Nonce:
		return Verdict{Action: AskProof, File: NonceFile(k.Boot.Staging, k.Boot.Cluster)}
	case k.Tracker != nil && k.Tracker.Process == h.Process && !k.Tracker.Losing:
		return Verdict{Action: Welcome}
	}
	return Verdict{Action: Register}
}

func notShared(tracker, why string, boot facts.Bootstrapped) Verdict {
	return refuse("staging directory %s is not shared with tracker %s: %s", boot.Staging, tracker, why)
}

// NonceFile is the URL of the file that holds a cluster's nonce.
func NonceFile(staging, cluster string) string {
	return staging + "/" + wire.StagingClusters + "/" + cluster
}

// Streams are the streams that are not welcomed yet. The caller deletes a stream when it is
// welcomed or ends.
type Streams map[Stream]*pending

// Hello decides on a Hello, and keeps what the next message of the stream needs.
func (s Streams) Hello(id Stream, h *wire.Hello, k LeaderView) Verdict {
	v := judge(h, s[id], k)
	if v.Action == AskProof || v.Action == Register {
		s[id] = &pending{hello: h, proofAsked: v.Action == AskProof}
	}
	return v
}

// NoStaging decides on the message of a tracker that could not read the nonce.
func (s Streams) NoStaging(id Stream, why string, boot facts.Bootstrapped) Verdict {
	p := s[id]
	if p == nil {
		return Verdict{Action: Ignore}
	}
	return notShared(p.hello.Tracker, why, boot)
}

// Waiting is a stream on which a tracker waits for its registration.
type Waiting struct {
	Stream Stream
	Hello  *wire.Hello
}

// Waiting lists the streams on which a tracker waits for its registration, in order.
func (s Streams) Waiting(tracker string) (list []Waiting) {
	for id, p := range s {
		if !p.proofAsked && p.hello.Tracker == tracker {
			list = append(list, Waiting{id, p.hello})
		}
	}
	slices.SortFunc(list, func(a, b Waiting) int { return cmp.Compare(a.Stream, b.Stream) })
	return list
}
