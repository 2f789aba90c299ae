package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// helloWait is how long a job tracker may take to answer a Hello, and the staging
// directory to be read.
const helloWait = 5 * time.Second

// minLease keeps a careless leader from having heartbeats sent without pause.
const minLease = 100 * time.Millisecond

func (c *Core) streamUp() {
	c.up, c.registered = true, false
	c.streams++
	c.asks, c.reading = false, false
	c.hello()
}

func (c *Core) hello() {
	c.asked = c.now
	c.do(Send{&wire.Hello{
		Version: wire.Version, Tracker: c.cfg.Tracker, Process: c.cfg.Process, Incarnation: c.incarnation,
		Host: c.cfg.Host, Addr: c.cfg.Addr, MapSlots: c.cfg.MapSlots, ReduceSlots: c.cfg.ReduceSlots, Nonce: c.nonce,
		Rack: c.cfg.Rack, DisksLeft: c.disksLeft,
	}})
}

// readNonce has the leader's proof of a shared staging directory read. It is kept
// for the Hello of later streams.
func (c *Core) readNonce(m *wire.Staging) {
	if c.registered || c.reading {
		c.hangup("a *wire.Staging came where none was due")
		return
	}
	staging, cluster, ok := rootOf(m.File)
	if !ok {
		c.refuse(fmt.Sprintf("the job tracker names no file of a staging directory: %q", m.File))
		return
	}
	if c.quitsFor(cluster) {
		return
	}
	if c.staging != "" && staging != c.staging {
		c.refuse(fmt.Sprintf("the job tracker names staging directory %s, this task tracker serves %s alone: if the cluster has moved, start it with -staging %s",
			staging, c.staging, staging))
		return
	}
	c.proving = staging
	c.asks, c.reading, c.asked = true, true, c.now
	c.do(ReadNonce{Stream: c.streams, File: m.File})
}

func (c *Core) nonceRead(ev NonceRead) {
	if !c.up || ev.Stream != c.streams || !c.reading {
		return // of an earlier stream, or too late
	}
	c.reading = false
	if ev.Error != "" {
		c.asked = c.now
		c.do(Send{&wire.NoStaging{Reason: ev.Error}})
		return
	}
	c.nonce, c.proved = ev.Nonce, c.proving
	c.hello()
}

func (c *Core) refused(m *wire.Refuse) {
	if !c.registered && m.Leader == "" {
		c.nonce, c.proved = "", "" // it may have been another staging directory's
	}
	c.up, c.registered = false, false
	c.do(Hangup{Reason: "refused: " + m.Reason, Fault: c.asks})
}

func (c *Core) hangup(reason string) {
	c.up, c.registered = false, false
	c.do(Hangup{Reason: reason})
}

// refuse leaves a job tracker that is not to be served, however often it is met.
func (c *Core) refuse(reason string) {
	c.up, c.registered = false, false
	c.do(Hangup{Reason: reason, Fault: true})
}

// leaderDue is when a leader that stays silent is left.
func (c *Core) leaderDue() (time.Duration, bool) {
	switch {
	case c.registered:
		return c.heard + c.lease, true
	case c.up && !c.registered:
		return c.asked + helloWait, true
	}
	return 0, false
}

// checkLeader leaves a job tracker that is silent for too long: stopped, or at
// the other end of a broken network. When the owner comes much later than asked
// it was stopped itself, and what the leader has said may still be on its way.
func (c *Core) checkLeader() {
	due, limited := c.leaderDue()
	if !limited || c.now < due {
		return
	}
	switch grace := c.lease / 2; {
	case c.registered && c.now-due > grace:
		c.heard = c.now - grace
	case c.registered:
		c.hangup(fmt.Sprintf("nothing was heard from the leader for %v", c.lease))
	case c.reading:
		c.nonceRead(NonceRead{Stream: c.streams, Error: fmt.Sprintf("it could not be read within %v", helloWait)})
	default:
		c.hangup(fmt.Sprintf("no answer to the hello within %v", helloWait))
	}
}

// quitsFor ends a task tracker whose directory belongs to another cluster than this one.
func (c *Core) quitsFor(cluster string) bool {
	if cluster == "" || c.cluster == "" || cluster == c.cluster {
		return false
	}
	reason := fmt.Sprintf("directory %s belongs to cluster %s, the job tracker leads cluster %s", c.cfg.Dir, c.cluster, cluster)
	c.hangup(reason)
	c.do(Quit{reason})
	return true
}

// welcome begins to serve a leader, with an inventory. An incarnation other than
// ours says that we were lost in between: all but finished map outputs is over.
func (c *Core) welcome(w *wire.Welcome) {
	if c.quitsFor(w.Cluster) {
		return
	}
	if w.Cluster == "" && !c.cfg.Embedded {
		c.refuse("the job tracker names no cluster")
		return
	}
	if !c.obeys(w.Epoch) {
		c.hangup(fmt.Sprintf("the leader of epoch %d is not the leader any more, %d is known", w.Epoch, c.epoch))
		return
	}
	if w.Cluster != "" && c.cluster == "" {
		c.cluster = w.Cluster
		c.do(KeepCluster{w.Cluster})
	}
	if c.proved != "" && c.staging == "" {
		c.staging = c.proved
		c.do(KeepStaging{c.staging})
	}
	if c.incarnation != 0 && w.Incarnation != c.incarnation {
		c.endIncarnation()
	}
	c.incarnation, c.lease, c.registered = w.Incarnation, max(w.Lease, minLease), true
	if c.troubled() {
		c.tellCapacity()
	}
	c.owe()
	c.beat, c.progress = c.now, false
	c.lostAgain()
}
