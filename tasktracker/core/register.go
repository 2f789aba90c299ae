package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// helloWait is how long a job tracker may take to answer a Hello, and how long reading the
// nonce may take.
const helloWait = 5 * time.Second

// minLease protects against a leader with a wrong lease: heartbeats would never pause.
const minLease = 100 * time.Millisecond

func (c *Core) streamUp() {
	c.connected, c.registered = true, false
	c.streams++
	c.nonceAsked, c.reading = false, false
	c.hello()
}

func (c *Core) hello() {
	c.askedAt = c.now
	c.do(Send{&wire.Hello{
		Version: wire.Version, Tracker: c.cfg.Tracker, Process: c.cfg.Process, Incarnation: c.incarnation,
		Host: c.cfg.Host, Addr: c.cfg.Addr, MapSlots: c.cfg.MapSlots, ReduceSlots: c.cfg.ReduceSlots, Nonce: c.nonce,
		Rack: c.cfg.Rack, DisksAbandoned: c.disksLeft,
	}})
}

// readNonce reads the nonce that proves a shared staging directory. The Hello of later
// streams has it too.
func (c *Core) readNonce(m *wire.Staging) {
	if c.registered || c.reading {
		c.hangup("a *wire.Staging came where none was due")
		return
	}
	staging, cluster, ok := rootOf(m.File)
	if !ok {
		c.refuseLeader(fmt.Sprintf("the job tracker names no file of a staging directory: %q", m.File))
		return
	}
	if c.quitsFor(cluster) {
		return
	}
	if c.staging != "" && staging != c.staging {
		c.refuseLeader(fmt.Sprintf("the job tracker names staging directory %s, this task tracker serves %s alone: if the cluster has moved, start it with -staging %s",
			staging, c.staging, staging))
		return
	}
	c.provingStaging = staging
	c.nonceAsked, c.reading, c.askedAt = true, true, c.now
	c.do(ReadNonce{Stream: c.streams, File: m.File})
}

func (c *Core) nonceRead(ev NonceRead) {
	if !c.connected || ev.Stream != c.streams || !c.reading {
		return // it belongs to an earlier stream, or is too late
	}
	c.reading = false
	if ev.Error != "" {
		c.askedAt = c.now
		c.do(Send{&wire.NoStaging{Reason: ev.Error}})
		return
	}
	c.nonce, c.provedStaging = ev.Nonce, c.provingStaging
	c.hello()
}

func (c *Core) refused(m *wire.Refuse) {
	if !c.registered && m.Leader == "" {
		c.nonce, c.provedStaging = "", "" // perhaps it is another staging directory's
	}
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: "refused: " + m.Reason, Fault: c.nonceAsked})
}

func (c *Core) hangup(reason string) {
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: reason})
}

// refuseLeader closes the stream to a job tracker that this tracker must not serve.
func (c *Core) refuseLeader(reason string) {
	c.connected, c.registered = false, false
	c.do(Hangup{Reason: reason, Fault: true})
}

// leaderDeadline is when a silent leader's stream is closed.
func (c *Core) leaderDeadline() (time.Duration, bool) {
	switch {
	case c.registered:
		return c.heardAt + c.lease, true
	case c.connected && !c.registered:
		return c.askedAt + helloWait, true
	}
	return 0, false
}

// checkLeader closes the stream to a silent job tracker. If this call is much later than
// the deadline, this process was suspended, and the leader's messages may not be read yet.
func (c *Core) checkLeader() {
	due, limited := c.leaderDeadline()
	if !limited || c.now < due {
		return
	}
	switch grace := c.lease / 2; {
	case c.registered && c.now-due > grace:
		c.heardAt = c.now - grace
	case c.registered:
		c.hangup(fmt.Sprintf("nothing was heard from the leader for %v", c.lease))
	case c.reading:
		c.nonceRead(NonceRead{Stream: c.streams, Error: fmt.Sprintf("it could not be read within %v", helloWait)})
	default:
		c.hangup(fmt.Sprintf("no answer to the hello within %v", helloWait))
	}
}

// quitsFor ends this task tracker if its directory belongs to another cluster.
func (c *Core) quitsFor(cluster string) bool {
	if cluster == "" || c.cluster == "" || cluster == c.cluster {
		return false
	}
	reason := fmt.Sprintf("directory %s belongs to cluster %s, the job tracker leads cluster %s", c.cfg.Dir, c.cluster, cluster)
	c.hangup(reason)
	c.do(Quit{reason})
	return true
}

// welcome registers with a leader and sends the inventory. A new incarnation means that
// the leader lost this tracker meanwhile: everything but finished map outputs ends.
func (c *Core) welcome(w *wire.Welcome) {
	if c.quitsFor(w.Cluster) {
		return
	}
	if w.Cluster == "" && !c.cfg.Embedded {
		c.refuseLeader("the job tracker names no cluster")
		return
	}
	if !c.acceptsEpoch(w.Epoch) {
		c.hangup(fmt.Sprintf("the leader of epoch %d is not the leader any more, %d is known", w.Epoch, c.epoch))
		return
	}
	if w.Cluster != "" && c.cluster == "" {
		c.cluster = w.Cluster
		c.do(KeepCluster{w.Cluster})
	}
	if c.provedStaging != "" && c.staging == "" {
		c.staging = c.provedStaging
		c.do(KeepStaging{c.staging})
	}
	if c.incarnation != 0 && w.Incarnation != c.incarnation {
		c.endIncarnation()
	}
	c.incarnation, c.lease, c.registered = w.Incarnation, max(w.Lease, minLease), true
	if c.hasBadDisk() {
		c.sendCapacity()
	}
	c.scheduleInventory()
	c.beatAt, c.hasProgress = c.now, false
	c.resendLost()
}
