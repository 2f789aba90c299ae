package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/wire"
)

var fleet = flag.Int("fleet", 12, "number of task trackers of TestFleetFailsOver")

// fleetPatience limits every wait of TestFleetFailsOver.
const fleetPatience = 5 * time.Minute

// fleetMember is a job tracker with its log and API, all over TLS.
type fleetMember struct {
	addr    string
	server  *jobtracker.Server
	replica *replica.Replica
	stop    func()
}

// TestFleetFailsOver: the leader of many task trackers, which are connected over TLS, stops. All of
// them take part again under the next leader, and none was lost. -fleet 1000 is the size of row 48
// of docs/promises.md.
func TestFleetFailsOver(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	authority, err := identity.OpenAuthority(filepath.Join(certs, "authority"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(role identity.Role, name string) *identity.Identity {
		dir := filepath.Join(certs, name)
		if err := authority.Issue(dir, identity.Peer{Role: role, Name: name}, time.Now(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		id, err := identity.Load(dir, role, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	members := startMembers(t, issue)
	awaitFleet(t, members, nil, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var trackers sync.WaitGroup
	defer trackers.Wait()
	defer cancel()
	var dials, lost atomic.Int64
	for i := range *fleet {
		f := &fleetTracker{name: fmt.Sprintf("t%d", i), process: rand.Uint64() | 1, dials: &dials, lost: &lost}
		config := issue(identity.TaskTracker, f.name).Dialer(identity.JobTracker)
		trackers.Go(func() { f.run(ctx, members, config) })
	}
	first := awaitFleet(t, members, nil, *fleet)
	before := dials.Load()
	first.stop()
	begin := time.Now()
	awaitFleet(t, members, first, *fleet)
	t.Logf("%d task trackers take part again %v after the leader stopped, with %d dials", *fleet, time.Since(begin).Round(time.Millisecond), dials.Load()-before)
	if n := lost.Load(); n > 0 {
		t.Errorf("leaders took task trackers for lost %d times", n)
	}
}

// startMembers starts three job trackers.
func startMembers(t *testing.T, issue func(identity.Role, string) *identity.Identity) []*fleetMember {
	t.Helper()
	files := dfs.Mux{"mem": mem.New(1 << 20)}
	var members []*fleetMember
	var voters []replica.Voter
	for i := range 3 {
		name := fmt.Sprintf("jt%d", i+1)
		id := issue(identity.JobTracker, name)
		r, err := replica.Open(replica.Config{
			ID: name, Dir: filepath.Join(t.TempDir(), name), Listen: "127.0.0.1:0",
			Timeout: 2 * time.Second, // all task trackers are in this process too
			Serve:   id.Server(identity.JobTracker), Dial: id.Dialer(identity.JobTracker),
		})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m := &fleetMember{addr: listener.Addr().String(), replica: r}
		m.server = jobtracker.New(jobtracker.Config{ID: name, Addr: m.addr, Log: r, FS: files, Staging: "mem://t/staging", Lease: 30 * time.Second})
		api := NewServer(New(Config{ID: name, Server: m.server, Identified: true}), nil, nil, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := m.server.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() { _ = api.Serve(identity.Listen(listener, id.Server(identity.JobTracker, identity.TaskTracker))) })
		m.stop = sync.OnceFunc(func() {
			cancel()
			api.Close()
			running.Wait()
		})
		t.Cleanup(m.stop)
		members, voters = append(members, m), append(voters, replica.Voter{ID: name, Addr: r.Addr()})
	}
	if err := members[0].replica.Bootstrap(voters); err != nil && !errors.Is(err, replica.ErrHasState) {
		t.Fatal(err)
	}
	return members
}

// awaitFleet waits until task trackers take part under a leader other than the stopped one.
func awaitFleet(t *testing.T, members []*fleetMember, stopped *fleetMember, want int) *fleetMember {
	t.Helper()
	deadline := time.After(fleetPatience)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		connected := 0
		for _, m := range members {
			if m == stopped {
				continue
			}
			c, err := m.server.Cluster(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, x := range c.Trackers {
				if x.Connected {
					n++
				}
			}
			if c.IsLeader && n == want {
				return m
			}
			connected = max(connected, n)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %d task trackers take part", connected, want)
		}
	}
}

// fleetTracker is a task tracker that only has a stream.
type fleetTracker struct {
	name        string
	process     uint64
	incarnation uint64 // of the last Welcome
	leader      string // of the last Welcome or Refuse
	dials, lost *atomic.Int64
}

// run keeps a stream open, with pauses as in a real task tracker.
func (f *fleetTracker) run(ctx context.Context, members []*fleetMember, config *tls.Config) {
	pause, next, hint := time.Duration(0), rand.IntN(len(members)), ""
	for ctx.Err() == nil {
		addr := hint
		if addr == "" {
			next++
			addr = members[next%len(members)].addr
		}
		hint = ""
		f.dials.Add(1)
		if conn, err := DialStream(ctx, addr, config); err == nil {
			welcomed := false
			if welcomed, hint = f.serve(ctx, conn); welcomed {
				pause = 0
			}
		}
		pause = min(max(2*pause, 50*time.Millisecond), 4*time.Second)
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
		}
	}
}

// serve serves a stream until it ends. It returns the leader's address, if the job tracker named it.
func (f *fleetTracker) serve(ctx context.Context, conn *wire.Conn) (welcomed bool, leader string) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if conn.Send(&wire.Hello{
		Version: wire.Version, Tracker: f.name, Process: f.process, Host: f.name, Addr: f.name + ":1", MapSlots: 2, ReduceSlots: 1,
		LostLeader: f.leader,
	}) != nil {
		return false, ""
	}
	ended := make(chan struct{})
	defer close(ended)
	for {
		m, err := conn.Receive()
		if err != nil {
			return welcomed, f.leader
		}
		switch m := m.(type) {
		case *wire.Refuse:
			f.leader = cmp.Or(m.Leader, f.leader)
			return welcomed, m.Leader
		case *wire.Welcome:
			f.leader = m.Leader
			if f.incarnation != 0 && f.incarnation != m.Incarnation {
				f.lost.Add(1)
			}
			welcomed, f.incarnation = true, m.Incarnation
			if conn.Send(&wire.Inventory{}) != nil {
				return welcomed, ""
			}
			go sendHeartbeats(conn, m.Lease/5, ended)
		}
	}
}

// sendHeartbeats sends heartbeats until the stream ends.
func sendHeartbeats(conn *wire.Conn, every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if conn.Send(&wire.Heartbeat{}) != nil {
				return
			}
		case <-ended:
			return
		}
	}
}
