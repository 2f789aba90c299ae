package replica

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// patience limits every wait of these tests.
const patience = 2 * time.Minute

// testTimeout is raft's timeout in these tests, long enough for a busy machine.
const testTimeout = 500 * time.Millisecond

// TestMain runs more tests at once than there are processors: they mostly wait for elections.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// node is a replica with a fake job tracker. Its facts are the list of committed entries.
type node struct {
	t   *testing.T
	cfg Config
	*Replica

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at each change of the fields below
	applied   []string
	index     uint64
	term      uint64 // in which it leads; 0: it does not lead
	undecided map[string]int
	refused   []core.Refused
	restores  int
	snapshots int
	failure   error
	stop      chan struct{}
	stopped   chan struct{}
}

// loopback returns an address with port 0 that only this process uses, so that a restarted replica
// finds its port free.
var loopback = sync.OnceValue(func() string {
	pid := os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d:0", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	l, err := net.Listen("tcp", own)
	if err != nil {
		return "127.0.0.1:0" // other systems have only this address
	}
	l.Close()
	return own
})

func open(t *testing.T, cfg Config) *node {
	t.Helper()
	n, err := tryOpen(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func tryOpen(t *testing.T, cfg Config) (*node, error) {
	defaults(&cfg.Listen, loopback())
	defaults(&cfg.Timeout, testTimeout)
	defaults(&cfg.segmentSize, 1<<20)
	defaults(&cfg.stopWait, patience)
	if os.Getenv("QUERN_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", cfg.ID)
	}
	r, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Listen = r.Addr()
	n := &node{
		t: t, cfg: cfg, Replica: r, changed: make(chan struct{}), undecided: make(map[string]int),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go n.run()
	t.Cleanup(n.close)
	return n, nil
}

func (n *node) run() {
	defer close(n.stopped)
	for {
		select {
		case <-n.Ready():
			n.mu.Lock()
			for _, ev := range n.Take() {
				n.event(ev)
			}
			close(n.changed)
			n.changed = make(chan struct{})
			n.mu.Unlock()
		case <-n.stop:
			return
		}
	}
}

func (n *node) event(ev jobtracker.LogEvent) {
	if ev.Snapshot != nil {
		n.snapshots++
		ev.Snapshot(bytes.Join(toBytes(n.applied), []byte("\n")), nil)
		return
	}
	switch e := ev.Event.(type) {
	case core.Entry:
		if e.Index <= n.index {
			n.t.Errorf("%s: entry %d after %d", n.cfg.ID, e.Index, n.index)
		}
		n.index = e.Index
		n.applied = append(n.applied, string(e.Data))
	case core.Restored:
		n.restores++
		n.applied = nil
		if len(e.Snapshot) > 0 {
			for _, x := range bytes.Split(e.Snapshot, []byte("\n")) {
				n.applied = append(n.applied, string(x))
			}
		}
	case core.Elected:
		n.term = e.Term
	case core.Deposed:
		n.term = 0
	case core.Undecided:
		n.undecided[e.Key]++
	case core.Refused:
		n.refused = append(n.refused, e)
	case core.LogFailed:
		n.failure = e.Err
	}
}

func toBytes(list []string) [][]byte {
	var out [][]byte
	for _, x := range list {
		out = append(out, []byte(x))
	}
	return out
}

// close stops the replica cleanly, and then the goroutine that reads its events.
func (n *node) close() {
	n.t.Helper()
	if err := n.Close(); err != nil {
		n.t.Errorf("close %s: %v", n.cfg.ID, err)
	}
	n.stopReading()
}

func (n *node) stopReading() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.stop:
	default:
		close(n.stop)
	}
}

// crash ends the replica without a hand-over or a snapshot: almost like a kill of the process.
func (n *node) crash() {
	n.t.Helper()
	n.events.close()
	inst := n.instance()
	n.Replica.close.Do(func() {
		n.Replica.mu.Lock()
		n.closing = true
		n.Replica.mu.Unlock()
		close(n.done)
		if !inst.end(patience) {
			n.t.Errorf("%s: raft does not stop", n.cfg.ID)
		}
		n.loops.Wait()
		n.release()
	})
	n.stopReading()
}

// reopen starts the replica again at its address, with its files.
func (n *node) reopen() *node {
	n.t.Helper()
	n.crash()
	return open(n.t, n.cfg)
}

// await waits until ok returns true. It calls ok while it holds the node's lock.
func (n *node) await(what string, ok func() bool) {
	n.t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(20 * time.Millisecond); ; { // some changes have no event
		n.mu.Lock()
		done, changed := ok(), n.changed
		n.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline:
			n.mu.Lock()
			defer n.mu.Unlock()
			n.t.Fatalf("%s: waited too long for %s; leads in term %d, failure %v, applied %q", n.cfg.ID, what, n.term, n.failure, n.applied)
		}
	}
}

func (n *node) leads() bool { return n.term > 0 }

func (n *node) has(entry string) bool { return slices.Contains(n.applied, entry) }

func (n *node) awaitEntry(entry string) {
	n.t.Helper()
	n.await("entry "+entry, func() bool { return n.has(entry) })
}

// group is a cluster.
type group struct {
	t     *testing.T
	nodes []*node
}

// newGroup bootstraps n replicas.
func newGroup(t *testing.T, n int, change func(*Config)) *group {
	t.Helper()
	g := &group{t: t}
	dir := t.TempDir()
	var voters []Voter
	for i := range n {
		id := fmt.Sprintf("jt%d", i+1)
		cfg := Config{ID: id, Dir: filepath.Join(dir, id)}
		if change != nil {
			change(&cfg)
		}
		g.nodes = append(g.nodes, open(t, cfg))
		voters = append(voters, Voter{ID: id, Addr: g.nodes[i].Addr()})
	}
	for _, n := range g.nodes {
		if err := n.Bootstrap(voters); err != nil && !errors.Is(err, ErrHasState) {
			t.Fatal(err)
		}
	}
	return g
}

// leader waits for a leader among the given nodes, or among all.
func (g *group) leader(among ...*node) *node {
	g.t.Helper()
	if len(among) == 0 {
		among = g.nodes
	}
	deadline := time.After(patience)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		for _, n := range among {
			n.mu.Lock()
			leads := n.leads() && n.failure == nil
			n.mu.Unlock()
			if leads {
				return n
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			g.t.Fatal("no leader")
		}
	}
}

// others returns the nodes other than n.
func (g *group) others(n *node) []*node {
	return slices.DeleteFunc(slices.Clone(g.nodes), func(o *node) bool { return o == n })
}

// commit proposes an entry to the leader until it is applied there. Its key is the entry.
func (g *group) commit(entry string, among ...*node) *node {
	g.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		n := g.leader(among...)
		n.mu.Lock()
		before := n.undecided[entry]
		n.mu.Unlock()
		n.Propose(entry, []byte(entry))
		done := false
		n.await("an answer for "+entry, func() bool {
			done = n.has(entry)
			return done || n.undecided[entry] > before || !n.leads() || n.failure != nil
		})
		if done {
			return n
		}
	}
	g.t.Fatalf("%s was not committed", entry)
	return nil
}

// reopen starts a node again.
func (g *group) reopen(n *node) *node {
	g.t.Helper()
	again := n.reopen()
	g.nodes[slices.Index(g.nodes, n)] = again
	return again
}

// check waits until all nodes have applied last, and compares their lists.
func (g *group) check(last string) {
	g.t.Helper()
	for _, n := range g.nodes {
		n.awaitEntry(last)
	}
	for _, n := range g.nodes[1:] {
		n.await("the entries of "+g.nodes[0].cfg.ID, func() bool { return slices.Equal(n.applied, g.nodes[0].list()) })
	}
}

func (n *node) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.applied)
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
