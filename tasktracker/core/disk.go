package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// disk is a directory for the data of jobs, or the tracker's own directory.
type disk struct {
	n       int // index in Config.Disks; stateDisk: Config.Dir
	path    string
	bad     string // why it is not used; empty: it is good
	probing bool
	again   time.Duration // when it is probed next, if it is bad
	strikes int           // failures since the last successful write
}

// stateDisk is the number of Config.Dir if it is not in Config.Disks.
const stateDisk = -1

func (c *Core) makeDisks() {
	for i, path := range c.cfg.Disks {
		d := &disk{n: i, path: path}
		c.disks = append(c.disks, d)
		if path == c.cfg.Dir {
			c.state = d
		}
	}
	c.watched = slices.Clone(c.disks)
	if c.state == nil {
		c.state = &disk{n: stateDisk, path: c.cfg.Dir}
		c.watched = append(c.watched, c.state)
	}
}

// noUsableDisk reports whether there is no disk to run tasks on.
func (c *Core) noUsableDisk() bool {
	return c.state.bad != "" || !slices.ContainsFunc(c.disks, func(d *disk) bool { return d.bad == "" })
}

// pickDisk picks a good disk, round robin. Doubtful disks come last. It returns nil if
// there is no good disk.
func (c *Core) pickDisk() *disk {
	var last *disk
	for range c.disks {
		d := c.disks[c.last.disk%len(c.disks)]
		c.last.disk++
		switch {
		case d.bad != "":
		case c.doubtful(d):
			last = d
		default:
			return d
		}
	}
	return last
}

// doubtful reports whether something failed on a disk and it was not probed since. The
// probe waits until the files of the failed attempt are removed.
func (c *Core) doubtful(d *disk) bool {
	return d.probing || slices.ContainsFunc(c.active, func(a *attempt) bool {
		return a.disk == d && a.state == wire.AttemptFailed
	})
}

// suspect has a disk probed after a failure on it.
func (c *Core) suspect(d *disk) {
	if !d.probing && d.bad == "" {
		c.probe(d)
	}
}

func (c *Core) probe(d *disk) {
	d.probing = true
	c.do(Probe{Disk: d.n, Path: d.path})
}

// strike counts failures on a disk whose probes succeed.
func (c *Core) strike(d *disk, reason string) {
	c.suspect(d)
	if d.strikes++; d.strikes >= c.cfg.DiskStrikes {
		c.diskFailed(d, reason)
	}
}

func (c *Core) diskProbed(ev DiskProbed) {
	i := slices.IndexFunc(c.watched, func(d *disk) bool { return d.n == ev.Disk })
	if i < 0 {
		return
	}
	d := c.watched[i]
	d.probing = false
	switch {
	case ev.Error != "":
		c.diskFailed(d, ev.Error)
	case d.bad != "" && c.now >= d.again:
		d.bad, d.strikes = "", 0
		c.sendCapacity()
	}
}

// probeAgain probes the bad disks periodically.
func (c *Core) probeAgain() {
	for _, d := range c.watched {
		if d.bad != "" && !d.probing && c.now >= d.again {
			c.probe(d)
		}
	}
}

// diskFailed stops using a disk: its map outputs are lost, its homes gather again on
// another disk, and its attempts are killed, which does not count as their failure.
func (c *Core) diskFailed(d *disk, reason string) {
	known := d.bad != ""
	d.bad, d.again = reason, c.now+c.cfg.ProbeAgain
	if known {
		return
	}
	c.disksLeft++
	c.sendCapacity()
	for _, j := range c.sortedJobs() {
		if !j.dropped {
			c.abandonDisk(j, d)
		}
	}
	if c.noUsableDisk() {
		c.endWithoutDisk(c.whyBad(d))
	}
}

func (c *Core) whyBad(d *disk) string {
	return fmt.Sprintf("disk %s of tracker %s failed: %s", d.path, c.cfg.Tracker, d.bad)
}

// loseOutput forgets a map output on a failed disk, and reports it lost.
func (c *Core) loseOutput(a *attempt, d *disk) {
	lost := wire.OutputLost{Job: a.job.id, Map: a.id.Task.N, Attempt: a.id.N, Reason: c.whyBad(d)}
	c.unreadable(&lost)
	c.dropOutput(a)
	c.send(&lost)
}

func (c *Core) abandonDisk(j *job, d *disk) {
	why := c.whyBad(d)
	for _, a := range slices.Clone(j.attempts) {
		switch {
		case a.disk != d:
		case a.hasOutput():
			c.loseOutput(a, d)
		case a.phase <= running:
			c.kill(a, why)
		}
	}
	for _, h := range slices.Clone(j.homes) {
		if h.disk != d {
			continue
		}
		for _, a := range j.attempts {
			if a.phase <= running && len(a.runs) > 0 && a.id.Task.N == h.partition {
				c.kill(a, why)
			}
		}
		c.dropHome(h)
		if to := c.pickDisk(); to != nil {
			c.beginHome(j, to, h.partition, h.gen, h.maps)
		}
	}
}

// endWithoutDisk ends attempts and homes when no disk is left.
func (c *Core) endWithoutDisk(why string) {
	for _, a := range slices.Clone(c.active) {
		if a.id.Task.Kind.Slotted() && a.phase <= running {
			c.kill(a, why)
		}
	}
	for _, j := range c.sortedJobs() {
		for len(j.homes) > 0 {
			c.dropHome(j.homes[0])
		}
	}
}

// Running is an attempt that may be writing to a disk.
type Running struct {
	Worker  int
	Attempt wire.AttemptID
	Dir     string
}

// Running lists the attempts that may be writing to a disk.
func (c *Core) Running(disk int) (list []Running) {
	for _, a := range c.active {
		if a.worker != nil && a.phase < ending && a.disk.n == disk {
			list = append(list, Running{a.worker.id, a.id, a.dir()})
		}
	}
	return list
}

// slots returns the map slots and the reduce slots.
func (c *Core) slots() [2]int {
	if c.noUsableDisk() {
		return [2]int{}
	}
	return [2]int{c.cfg.MapSlots, c.cfg.ReduceSlots}
}

// sendCapacity reports the slots, and the bad disks.
func (c *Core) sendCapacity() {
	var reasons []string
	for _, d := range c.watched {
		if d.bad != "" {
			reasons = append(reasons, fmt.Sprintf("disk %s: %s", d.path, d.bad))
		}
	}
	slots := c.slots()
	c.send(&wire.Capacity{MapSlots: slots[0], ReduceSlots: slots[1], Reason: strings.Join(reasons, "; "), DisksAbandoned: c.disksLeft})
}

// hasBadDisk reports whether the leader must get a Capacity message after the hello.
func (c *Core) hasBadDisk() bool {
	return slices.ContainsFunc(c.watched, func(d *disk) bool { return d.bad != "" })
}
