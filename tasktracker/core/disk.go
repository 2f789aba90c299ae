package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// disk is where data of jobs lies, or the tracker's own directory.
type disk struct {
	n       int // in Config.Disks; stateDisk: it is Config.Dir alone
	path    string
	bad     string // why nothing is put there; empty: it is good
	probing bool
	again   time.Duration // when a bad one is probed next
	strikes int           // local failures since something was written there
}

// stateDisk is the number of Config.Dir when it is none of Config.Disks.
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

// withdrawn says whether there is no disk to run tasks on.
func (c *Core) withdrawn() bool {
	return c.state.bad != "" || !slices.ContainsFunc(c.disks, func(d *disk) bool { return d.bad == "" })
}

// place picks a disk, round robin among the good ones; those that are doubtful
// only if there are no others. Nil: there is none.
func (c *Core) place() *disk {
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

// doubtful says whether something has failed on a disk that was not found good since. It is
// probed once the files of what has failed are removed.
func (c *Core) doubtful(d *disk) bool {
	return d.probing || slices.ContainsFunc(c.active, func(a *attempt) bool {
		return a.disk == d && a.state == wire.AttemptFailed
	})
}

// suspect has a disk probed, on which something has failed.
func (c *Core) suspect(d *disk) {
	if !d.probing && d.bad == "" {
		c.probe(d)
	}
}

func (c *Core) probe(d *disk) {
	d.probing = true
	c.do(Probe{Disk: d.n, Path: d.path})
}

// strike counts what could not be done on a disk though it looks good when probed.
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
		c.tellCapacity()
	}
}

// probeAgain looks at the bad disks now and then.
func (c *Core) probeAgain() {
	for _, d := range c.watched {
		if d.bad != "" && !d.probing && c.now >= d.again {
			c.probe(d)
		}
	}
}

// diskFailed gives a disk up: map outputs there are lost, homes there gather anew
// on another one, attempts that need it end, by no fault of theirs.
func (c *Core) diskFailed(d *disk, reason string) {
	known := d.bad != ""
	d.bad, d.again = reason, c.now+c.cfg.ProbeAgain
	if known {
		return
	}
	c.disksLeft++
	c.tellCapacity()
	for _, j := range c.sortedJobs() {
		if !j.dropped {
			c.leaveDisk(j, d)
		}
	}
	if c.withdrawn() {
		c.withdraw(c.whyBad(d))
	}
}

func (c *Core) whyBad(d *disk) string {
	return fmt.Sprintf("disk %s of tracker %s failed: %s", d.path, c.cfg.Tracker, d.bad)
}

// loseOutput forgets a map output on a disk that failed, and tells so.
func (c *Core) loseOutput(a *attempt, d *disk) {
	lost := wire.OutputLost{Job: a.job.id, Map: a.id.Task.N, Attempt: a.id.N, Reason: c.whyBad(d)}
	c.unreadable(&lost)
	c.dropOutput(a)
	c.tell(&lost)
}

func (c *Core) leaveDisk(j *job, d *disk) {
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
		if to := c.place(); to != nil {
			c.beginHome(j, to, h.partition, h.gen, h.maps)
		}
	}
}

// withdraw ends what needs a disk when there is none left.
func (c *Core) withdraw(why string) {
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

// Running lists those on a disk.
func (c *Core) Running(disk int) (list []Running) {
	for _, a := range c.active {
		if a.worker != nil && a.phase < ending && a.disk.n == disk {
			list = append(list, Running{a.worker.id, a.id, a.dir()})
		}
	}
	return list
}

// slots is how many attempts of each phase may run.
func (c *Core) slots() [2]int {
	if c.withdrawn() {
		return [2]int{}
	}
	return [2]int{c.cfg.MapSlots, c.cfg.ReduceSlots}
}

// tellCapacity tells the slots, and what is wrong with the disks.
func (c *Core) tellCapacity() {
	var reasons []string
	for _, d := range c.watched {
		if d.bad != "" {
			reasons = append(reasons, fmt.Sprintf("disk %s: %s", d.path, d.bad))
		}
	}
	slots := c.slots()
	c.tell(&wire.Capacity{MapSlots: slots[0], ReduceSlots: slots[1], Reason: strings.Join(reasons, "; "), DisksLeft: c.disksLeft})
}

// troubled says whether there is more to tell of the slots than the hello does.
func (c *Core) troubled() bool {
	return slices.ContainsFunc(c.watched, func(d *disk) bool { return d.bad != "" })
}
