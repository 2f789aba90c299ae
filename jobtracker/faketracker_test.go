package jobtracker

import (
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// fakeTracker is a task tracker at a wire.Pipe. It ends every attempt at once, and its homes have
// map outputs as soon as the leader names them.
type fakeTracker struct {
	name  string
	conn  *wire.Conn
	maps  int                     // number of maps that a setup attempt reports
	onMap func(*wire.Launch) bool // false: the attempt never ends
	ended chan struct{}
	homes map[int]*fakeHome

	mu       sync.Mutex
	launched map[wire.Kind]int
}

type fakeHome struct {
	set     *wire.SetHome
	digests map[int]uint64
}

// attach connects a fake tracker to s.
func attach(t *testing.T, s *Server, name string, process uint64, maps int) *fakeTracker {
	trackerEnd, serverEnd := wire.Pipe()
	f := &fakeTracker{
		name: name, conn: trackerEnd, maps: maps, ended: make(chan struct{}),
		homes: make(map[int]*fakeHome), launched: make(map[wire.Kind]int),
	}
	go s.Attach(serverEnd, "")
	if err := trackerEnd.Send(&wire.Hello{
		Version: wire.Version, Tracker: name, Process: process, Host: name, Addr: name + ":1", MapSlots: 2, ReduceSlots: 2,
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeTracker) run() {
	defer close(f.ended)
	go f.sendHeartbeats()
	for {
		m, err := f.conn.Receive()
		if err != nil || !f.receive(m) {
			f.conn.Close()
			return
		}
	}
}

// sendHeartbeats renews the lease until the stream ends.
func (f *fakeTracker) sendHeartbeats() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.send(&wire.Heartbeat{})
		case <-f.ended:
			return
		}
	}
}

func (f *fakeTracker) receive(m wire.Message) bool {
	switch m := m.(type) {
	case *wire.Welcome:
		return f.send(&wire.Inventory{})
	case *wire.Launch:
		f.mu.Lock()
		f.launched[m.Attempt.Task.Kind]++
		f.mu.Unlock()
		return f.runAttempt(m)
	case *wire.Grant:
		return f.report(m.Attempt, wire.AttemptSucceeded, &wire.Result{Bytes: 7})
	case *wire.Kill:
		return f.report(m.Attempt, wire.AttemptKilled, &wire.Result{Error: m.Reason})
	case *wire.SetHome:
		f.homes[m.Partition] = &fakeHome{set: m, digests: make(map[int]uint64)}
		return f.reportHome(m.Partition)
	case *wire.Outputs:
		outputs, err := m.Lists[0].Block.Outputs()
		if err != nil {
			return false
		}
		for p, h := range f.homes {
			for _, o := range outputs {
				h.digests[o.Map] = o.Digest
			}
			if !f.reportHome(p) {
				return false
			}
		}
	}
	return true
}

func (f *fakeTracker) send(m wire.Message) bool { return f.conn.Send(m) == nil }

func (f *fakeTracker) report(id wire.AttemptID, state wire.AttemptState, r *wire.Result) bool {
	return f.send(&wire.Report{Attempt: id, State: state, Result: r})
}

func (f *fakeTracker) runAttempt(m *wire.Launch) bool {
	id := m.Attempt
	switch id.Task.Kind {
	case wire.Setup:
		return f.report(id, wire.AttemptSucceeded, &wire.Result{Splits: &wire.SplitsDone{Maps: f.maps, Hash: splitsHash}})
	case wire.Map:
		if f.onMap != nil && !f.onMap(m) {
			return true
		}
		return f.report(id, wire.AttemptSucceeded, &wire.Result{
			Bytes:    5,
			Counters: wire.Counters{"g": {"MAPS": 1}},
			Output:   &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Digest: uint64(id.Task.N) + 1, Bytes: 3},
		})
	case wire.Reduce:
		return f.report(id, wire.AttemptReady, nil)
	}
	return f.report(id, wire.AttemptSucceeded, &wire.Result{})
}

func (f *fakeTracker) reportHome(p int) bool {
	h := f.homes[p]
	r := &wire.HomeReport{
		Job: h.set.Job, Partition: p, Generation: h.set.Generation, Maps: len(h.digests),
		Complete: len(h.digests) == h.set.Maps,
	}
	for _, d := range h.digests {
		r.Digest += d
	}
	return f.send(r)
}

func (f *fakeTracker) launches(k wire.Kind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.launched[k]
}
