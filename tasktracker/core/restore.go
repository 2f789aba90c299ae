package core

import "github.com/quernmr/quern/wire"

// restored takes a map output in that an earlier process has left.
func (c *Core) restored(ev Restored) {
	id, result := ev.Report.Attempt, ev.Report.Result
	d := c.diskAt(ev.Disk)
	if d == nil || result == nil || result.Output == nil || id.Task.Kind != wire.Map || c.attempts[id] != nil {
		return
	}
	j := c.job(id.Task.Job)
	a := &attempt{id: id, job: j, disk: d, phase: final, state: wire.AttemptSucceeded, bytes: ev.Report.Bytes, result: result}
	if j.dropped || d.bad != "" {
		c.do(Remove{a.dir()})
		return
	}
	out := result.Output
	out.Map, out.Attempt, out.Tracker, out.Addr = id.Task.N, id.N, c.cfg.Tracker, c.cfg.Addr
	j.attempts = append(j.attempts, a)
	c.attempts[id] = a
	c.late = c.late || c.registered && !c.owing
}

func (c *Core) diskAt(n int) *disk {
	if n < 0 || n >= len(c.disks) {
		return nil
	}
	return c.disks[n]
}

// restoreEnded lets the inventory that waits go. If it went without all outputs
// another stream will have a whole one.
func (c *Core) restoreEnded() {
	c.restoring = false
	if c.late && c.registered {
		c.hangup("more map outputs of an earlier process were found after the inventory")
	}
}

// owe sends the inventory, or has it wait until what an earlier process has left
// is known. The leader waits for it a lease at most.
func (c *Core) owe() {
	c.owing, c.late = c.restoring, false
	c.owed = c.now + c.lease/2
	if !c.owing {
		c.inventory()
	}
}

func (c *Core) payInventory() {
	if !c.owing || c.restoring && c.now < c.owed {
		return
	}
	c.owing = false
	if c.registered {
		c.inventory()
		c.lostAgain()
	}
}
