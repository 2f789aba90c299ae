package replica

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDiskFails: a replica with a full or broken disk fails with an error that names the file. The
// other replicas continue, and it takes part again after a restart with a working disk. Row 9 of
// docs/promises.md.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	fault := func(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }
	faults := map[string]func(*disk){
		"full, after half of a write": func(d *disk) {
			d.write = func(name string, p []byte) (int, error) { return len(p) / 2, fault("write", name, syscall.ENOSPC) }
		},
		"an error of the sync": func(d *disk) {
			d.sync = func(name string) error { return fault("sync", name, syscall.EIO) }
		},
		"no room for another segment": func(d *disk) {
			d.create = func(name string) error { return fault("create", name, syscall.ENOSPC) }
		},
	}
	for name, set := range faults {
		for _, owner := range []string{"the leader's", "a follower's"} {
			t.Run(owner+" disk: "+name, func(t *testing.T) {
				t.Parallel()
				failDisk(t, set, owner == "the leader's")
			})
		}
	}
}

func failDisk(t *testing.T, set func(*disk), leads bool) {
	disks := make(map[string]*disk)
	g := newGroup(t, 3, func(c *Config) {
		disks[c.ID] = newDisk()
		c.vfs, c.segmentSize = disks[c.ID], 512
	})
	leader := g.commit("before")
	broken := leader
	if !leads {
		broken = g.others(leader)[0]
	}
	disks[broken.cfg.ID].set(set)
	for i := range 20 {
		g.commit(fmt.Sprint("entry ", i))
	}
	broken.await("the failure", func() bool { return broken.failure != nil })
	if msg := broken.failure.Error(); !strings.Contains(msg, broken.cfg.Dir) || !strings.Contains(msg, ".wal") && !strings.Contains(msg, "sealed") {
		t.Errorf("the failure names no file: %s", msg)
	}
	disks[broken.cfg.ID].set(nil)
	g.reopen(broken)
	g.commit("after")
	g.check("after")
}

// TestTermCannotBeStored: a replica that cannot store its term or vote fails without a panic.
func TestTermCannotBeStored(t *testing.T) {
	t.Parallel()
	broken := make(chan struct{})
	g := newGroup(t, 3, func(c *Config) {
		if c.ID != "jt2" {
			return
		}
		c.metaFault = func() error {
			select {
			case <-broken:
				return syscall.EIO
			default:
				return nil
			}
		}
	})
	g.commit("before")
	n := g.nodes[1]
	close(broken)
	for i := 0; ; i++ { // elections, until the replica must store a term or vote
		leader := g.leader()
		n.mu.Lock()
		failure := n.failure
		n.mu.Unlock()
		if failure != nil {
			if !strings.Contains(failure.Error(), "wal-meta.db") {
				t.Errorf("the failure names no file: %v", failure)
			}
			break
		}
		leader.handOver(leader.instance())
	}
	g.commit("after", g.others(n)...)
}

// TestDiskHangs: if the leader's disk does not answer, its proposals become undecided and it fails.
// The others elect a leader, and Close returns in time.
func TestDiskHangs(t *testing.T) {
	t.Parallel()
	disks := make(map[string]*disk)
	g := newGroup(t, 3, func(c *Config) {
		disks[c.ID] = newDisk()
		c.vfs, c.writeLimit, c.stopWait = disks[c.ID], 10*testTimeout, 10*testTimeout
	})
	leader := g.commit("before")
	hang := make(chan struct{})
	disks[leader.cfg.ID].set(func(d *disk) {
		d.sync = func(string) error { <-hang; return nil }
	})
	leader.Propose("hanging", []byte("hanging"))
	leader.await("an answer", func() bool { return leader.undecided["hanging"] > 0 })
	leader.await("the failure", func() bool { return leader.failure != nil })
	if !strings.Contains(leader.failure.Error(), "does not answer") {
		t.Errorf("failed with %v", leader.failure)
	}
	g.commit("after", g.others(leader)...)
	if err := leader.Close(); err == nil {
		t.Error("closed although raft hangs")
	}
	leader.Replica.closeErr = nil
	close(hang)
}

// TestStall: the time in which a process is stopped is not the disk's, each write counts from zero, and
// a disk that does not answer is found.
func TestStall(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	tests := []struct {
		name   string
		checks [][2]float64 // the write's begin and the time of the check, in seconds
		want   float64
	}{
		{"short", [][2]float64{{1, 1.25}}, 0.25},
		{"hangs", [][2]float64{{1, 1.5}, {1, 2}, {1, 2.5}, {1, 3}}, 2},
		{"stopped", [][2]float64{{1, 1.5}, {1, 61.5}, {1, 62}}, 2},
		{"stopped before the first check", [][2]float64{{1, 61}}, 1},
		{"the next write", [][2]float64{{1, 1.5}, {1, 2}, {2.25, 2.5}}, 0.25},
	}
	for _, tt := range tests {
		var w stall
		var got time.Duration
		for _, c := range tt.checks {
			got = w.observe(at(c[0]), at(c[1]), time.Second)
		}
		if got.Seconds() != tt.want {
			t.Errorf("%s: %v, want %v s", tt.name, got, tt.want)
		}
	}
}

// TestLeaderStuck: the replica restarts a raft that leads but refuses all proposals
// (hashicorp/raft#696).
func TestLeaderStuck(t *testing.T) {
	t.Parallel()
	refusing := make(chan struct{})
	n := open(t, Config{ID: "jt1", Dir: t.TempDir(), stuckLimit: 2 * testTimeout, refuse: func() error {
		select {
		case <-refusing:
			return nil
		default:
			return errRestarting
		}
	}})
	g := &group{t: t, nodes: []*node{n}}
	if err := n.Bootstrap([]Voter{{"jt1", n.Addr()}}); err != nil {
		t.Fatal(err)
	}
	g.leader()
	for restarted := false; !restarted; { // propose again, as the core does
		before := 0
		n.await("the lock", func() bool { before = n.undecided["entry"]; return true })
		n.Propose("entry", []byte("entry"))
		n.await("an answer", func() bool {
			restarted = !n.leads()
			return restarted || n.undecided["entry"] > before
		})
	}
	close(refusing)
	g.commit("entry")
	g.commit("another")
	if n.restores > 0 || len(n.list()) < 2 {
		t.Errorf("after the restart: %d snapshots, %q", n.restores, n.list())
	}
}

// TestAcknowledgedIsSynced checks that an entry is synced when it is acknowledged. Bytes of other
// entries may not be: commit proposes an entry again if the leader changes.
func TestAcknowledgedIsSynced(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	unsynced := make(map[string][]byte) // by file
	var synced []byte
	log := newDisk()
	log.set(func(d *disk) {
		d.write = func(name string, p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			unsynced[name] = append(unsynced[name], p...)
			return len(p), nil
		}
		d.sync = func(name string) error {
			mu.Lock()
			defer mu.Unlock()
			synced = append(synced, unsynced[name]...)
			delete(unsynced, name)
			return nil
		}
	})
	g := newGroup(t, 1, func(c *Config) { c.vfs = log })
	for i := range 10 {
		entry := fmt.Sprint("entry ", i)
		g.commit(entry)
		mu.Lock()
		if !bytes.Contains(synced, []byte(entry)) {
			t.Errorf("%s is acknowledged and not synced; unsynced are %q", entry, unsynced)
		}
		mu.Unlock()
	}
}
