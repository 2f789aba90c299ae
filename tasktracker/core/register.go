package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// helloWait limits the answer of a job tracker to a Hello, and the read of the nonce.
const helloWait = 5 * time.Second

// minLease prevents heartbeats without a pause, if a leader sends a lease of almost 0.
const minLease = 100 * time.Millisecond

func (c *Core) streamUp(ev StreamUp) {
	c.connected, c.registered = true, false
	c.streams++
	c.nonceRequested, c.readingNonce = false, false
	c.hello(ev.LostLeader)
}

func (c *Core) hello(lostLeader string) {
	c.requestedAt = c.now
	c.do(Send{&wire.Hello{
		Version: wire.Version, Tracker: c.cfg.Tracker, Process: c.cfg.Process, Incarnation: c.incarnation,
		Host: c.cfg.Host, Addr: c.cfg.Addr, MapSlots: c.cfg.MapSlots, ReduceSlots: c.cfg.ReduceSlots, Nonce: c.nonce,
		Rack: c.cfg.Rack, DisksAbandoned: c.diskFailures, Memory: c.cfg.Memory, Cores: c.cfg.Cores,
		LostLeader: lostLeader, NotIsolated: wire.Truncate(c.cfg.NotIsolated, wire.MaxTrouble), Limits: wire.Truncate(c.cfg.Limits, wire.MaxTrouble),
		Isolation: c.cfg.Isolation,
	}})
}

// readNonce reads the nonce, which proves that the staging directory is shared. The Hello
// of later streams has it too.
func (c *Core) readNonce(m *wire.Staging) {
	if c.registered || c.readingNonce {
		c.hangup("a *wire.Staging came where none was due")
		return
	}
	staging, cluster, ok := parseNonceFile(m.File)
	if !ok {
		c.refuseLeader(fmt.Sprintf("the job tracker names no file of a staging directory: %q", m.File))
		return
	}
	if c.quitIfOtherCluster(cluster) {
		return
	}
	if c.staging != "" && staging != c.staging {
		c.refuseLeader(fmt.Sprintf("the job tracker names staging directory %s, but this task tracker uses %s: check its -staging, -join and -jobtracker",
			staging, c.staging))
		return
	}
	c.provingStaging = staging
	c.nonceRequested, c.readingNonce, c.requestedAt = true, true, c.now
	c.do(ReadNonce{Stream: c.streams, File: m.File})
}

func (c *Core) nonceRead(ev NonceRead) {
	if !c.connected || ev.Stream != c.streams || !c.readingNonce {
		return // it answers an earlier stream, or came after helloWait
	}
	c.readingNonce = false
	if ev.Error != "" {
		c.requestedAt = c.now
		c.do(Send{&wire.NoStaging{Reason: ev.Error}})
		return
	}
	c.nonce, c.provedStaging = ev.Nonce, c.provingStaging
	c.hello("")
}

func (c *Core) refused(m *wire.Refuse) {
	if c.nonceRequested && m.Leader == "" {
		c.nonce, c.provedStaging = "", "" // this leader rejects what was read for it
	}
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: "refused: " + m.Reason, NeedsAdmin: c.nonceRequested})
}

func (c *Core) hangup(reason string) {
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: reason})
}

// refuseLeader closes the stream to a job tracker that this tracker must not work for.
func (c *Core) refuseLeader(reason string) {
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: reason, NeedsAdmin: true})
}

// leaderDeadline returns the time at which the stream to a silent job tracker is closed.
func (c *Core) leaderDeadline() (time.Duration, bool) {
	switch {
	case c.registered:
		return c.lastMessageAt + c.lease, true
	case c.connected && !c.registered:
		return c.requestedAt + helloWait, true
	}
	return 0, false
}

// checkLeader closes the stream to a silent job tracker. If the deadline has long passed,
// this process was suspended, and the leader's messages may not be read yet.
func (c *Core) checkLeader() {
	deadline, limited := c.leaderDeadline()
	if !limited || c.now < deadline {
		return
	}
	switch grace := c.lease / 2; {
	case c.registered && c.now-deadline > grace:
		c.lastMessageAt = c.now - grace
	case c.registered:
		c.hangup(fmt.Sprintf("nothing was heard from the leader for %v", c.lease))
	case c.readingNonce:
		c.nonceRead(NonceRead{Stream: c.streams, Error: fmt.Sprintf("it could not be read within %v", helloWait)})
	default:
		c.hangup(fmt.Sprintf("no answer to the hello within %v", helloWait))
	}
}

// quitIfOtherCluster ends this task tracker if its directory belongs to another cluster.
func (c *Core) quitIfOtherCluster(cluster string) bool {
	if cluster == "" || c.cluster == "" || cluster == c.cluster {
		return false
	}
	reason := fmt.Sprintf("directory %s belongs to cluster %s, the job tracker leads cluster %s", c.cfg.Dir, c.cluster, cluster)
	c.hangup(reason)
	c.do(Quit{reason})
	return true
}

// welcome registers with a leader and sends the inventory. A new incarnation means that
// the leader had lost this tracker: only finished map outputs stay.
func (c *Core) welcome(w *wire.Welcome) {
	if c.quitIfOtherCluster(w.Cluster) {
		return
	}
	if w.Cluster == "" && !c.cfg.Embedded {
		c.refuseLeader("the job tracker names no cluster")
		return
	}
	if !c.acceptsEpoch(w.Epoch) {
		c.hangup(fmt.Sprintf("the job tracker leads epoch %d, but epoch %d has begun", w.Epoch, c.epoch))
		return
	}
	if w.Cluster != "" && c.cluster == "" {
		c.cluster = w.Cluster
		c.do(StoreCluster{w.Cluster})
	}
	if c.provedStaging != "" && c.staging == "" {
		c.staging = c.provedStaging
		c.do(StoreStaging{c.staging})
	}
	if c.incarnation != 0 && w.Incarnation != c.incarnation {
		c.endIncarnation()
	}
	c.incarnation, c.lease, c.registered = w.Incarnation, max(w.Lease, minLease), true
	if c.hasBadDisk() || c.unhealthy != "" {
		c.sendCapacity()
	}
	c.scheduleInventory()
	c.heartbeatAt, c.progressUnsent = c.now, false
	c.resendLost()
}
