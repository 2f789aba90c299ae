package core

import "github.com/quernmr/quern/wire"

// restored adds a map output of an earlier process.
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
	c.restoredLate = c.restoredLate || c.registered && !c.inventoryDue
}

func (c *Core) diskAt(n int) *disk {
	if n < 0 || n >= len(c.disks) {
		return nil
	}
	return c.disks[n]
}

// restoreEnded releases the inventory. If it was sent without some outputs, a new stream
// gets a complete one.
func (c *Core) restoreEnded() {
	c.restoring = false
	if c.restoredLate && c.registered {
		c.hangup("more map outputs of an earlier process were found after the inventory")
	}
}

// scheduleInventory sends the inventory, or delays it until the outputs of an earlier
// process are known. The leader waits for it at most one lease.
func (c *Core) scheduleInventory() {
	c.inventoryDue, c.restoredLate = c.restoring, false
	c.inventoryDeadline = c.now + c.lease/2
	if !c.inventoryDue {
		c.inventory()
	}
}

func (c *Core) sendDueInventory() {
	if !c.inventoryDue || c.restoring && c.now < c.inventoryDeadline {
		return
	}
	c.inventoryDue = false
	if c.registered {
		c.inventory()
		c.resendLost()
	}
}
