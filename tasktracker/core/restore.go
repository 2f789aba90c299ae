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
	a := &attempt{id: id, job: j, disk: d, phase: final, state: wire.AttemptSucceeded, bytes: ev.Report.Bytes, result: result, skipChanges: ev.Report.SkipChanges}
	if j.dropped || d.bad != "" {
		c.do(Remove{a.dir()})
		return
	}
	out := result.Output
	out.Map, out.Attempt, out.Tracker, out.Addr = id.Task.N, id.N, c.cfg.Tracker, c.cfg.Addr
	j.attempts = append(j.attempts, a)
	c.attempts[id] = a
	c.restoredLate = c.restoredLate || c.registered && !c.inventoryPending
}

func (c *Core) diskAt(n int) *disk {
	if n < 0 || n >= len(c.disks) {
		return nil
	}
	return c.disks[n]
}

// restoreEnded allows a pending inventory. If the inventory was sent before the last output
// was restored, a new stream begins, with a complete inventory.
func (c *Core) restoreEnded() {
	c.restoring = false
	if c.restoredLate && c.registered {
		c.hangup("more map outputs of an earlier process were found after the inventory")
	}
}

// scheduleInventory sends the inventory, or delays it until the outputs of an earlier
// process are restored, but for at most half a lease: the leader waits one lease.
func (c *Core) scheduleInventory() {
	c.inventoryPending, c.restoredLate = c.restoring, false
	c.inventoryDeadline = c.now + c.lease/2
	if !c.inventoryPending {
		c.inventory()
	}
}

func (c *Core) sendPendingInventory() {
	if !c.inventoryPending || c.restoring && c.now < c.inventoryDeadline {
		return
	}
	c.inventoryPending = false
	if c.registered {
		c.inventory()
		c.resendLost()
	}
}
