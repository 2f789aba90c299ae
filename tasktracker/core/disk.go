package core

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// disk is a directory for the data of jobs, or the tracker's own directory.
type disk struct {
	index     int // index in Config.Disks; stateDisk: Config.Dir
	path      string
	bad       string // reason for not using it; empty: it is good
	probing   bool
	nextProbe time.Duration // of a bad disk
	strikes   int           // failures since the last successful write
	fullUntil time.Duration // it was full: attempts wait for a probe, which follows the removal of files, at most until then
}

// fullWait limits the wait of attempts for a probe of a disk that was full: the probe may hang.
const fullWait = 30 * time.Second

// stateDisk is the index of Config.Dir if it is not in Config.Disks.
const stateDisk = -1

func (c *Core) makeDisks() {
	for i, path := range c.cfg.Disks {
		d := &disk{index: i, path: path}
		c.disks = append(c.disks, d)
		if path == c.cfg.Dir {
			c.state = d
		}
	}
	c.allDisks = slices.Clone(c.disks)
	if c.state == nil {
		c.state = &disk{index: stateDisk, path: c.cfg.Dir}
		c.allDisks = append(c.allDisks, c.state)
	}
}

// Disks yields all disks with the reason for not using each; empty: it is good.
func (c *Core) Disks() iter.Seq2[string, string] {
	return func(yield func(path, bad string) bool) {
		for _, d := range c.allDisks {
			if !yield(d.path, d.bad) {
				return
			}
		}
	}
}

// noUsableDisk reports whether no task can run here.
func (c *Core) noUsableDisk() bool {
	return c.state.bad != "" || !slices.ContainsFunc(c.disks, func(d *disk) bool { return d.bad == "" })
}

// pickDisk picks a good disk, round robin, or a doubtful disk if there is no other. It
// returns nil if all are bad.
func (c *Core) pickDisk() *disk {
	var last *disk
	for range c.disks {
		d := c.disks[c.last.disk%len(c.disks)]
		c.last.disk++
		switch {
		case d.bad != "":
		case c.doubtful(d):
			if last == nil || !c.awaitsSpace(d) {
				last = d
			}
		default:
			return d
		}
	}
	return last
}

// awaitSpace lets new attempts wait until the files of ended ones are removed from a disk.
func (c *Core) awaitSpace(d *disk) {
	if c.suspect(d); d.probing {
		d.fullUntil = c.now + fullWait
	}
}

// awaitsSpace reports whether attempts must not begin on a disk yet: the files that filled it may
// not be removed.
func (c *Core) awaitsSpace(d *disk) bool { return d.probing && c.now < d.fullUntil }

// allAwaitSpace reports whether no attempt can begin on a good disk yet.
func (c *Core) allAwaitSpace() bool {
	return !slices.ContainsFunc(c.disks, func(d *disk) bool { return d.bad == "" && !c.awaitsSpace(d) })
}

// doubtful reports whether an operation failed on a disk that was not probed since. The
// probe waits until the files of the failed attempt are removed.
func (c *Core) doubtful(d *disk) bool {
	return d.probing || slices.ContainsFunc(c.active, func(a *attempt) bool {
		return a.disk == d && a.state == wire.AttemptFailed
	})
}

// suspect probes a disk after a failure on it.
func (c *Core) suspect(d *disk) {
	if !d.probing && d.bad == "" {
		c.probe(d)
	}
}

func (c *Core) probe(d *disk) {
	d.probing = true
	c.do(Probe{Disk: d.index, Path: d.path})
}

// strike counts a failure on a disk, which becomes bad after Config.DiskStrikes of them.
func (c *Core) strike(d *disk, reason string) {
	c.suspect(d)
	if d.strikes++; d.strikes >= c.cfg.DiskStrikes {
		c.diskFailed(d, reason)
	}
}

func (c *Core) diskProbed(ev DiskProbed) {
	i := slices.IndexFunc(c.allDisks, func(d *disk) bool { return d.index == ev.Disk })
	if i < 0 {
		return
	}
	d := c.allDisks[i]
	d.probing, d.fullUntil = false, 0
	switch {
	case ev.Error != "":
		c.diskFailed(d, ev.Error)
	case d.bad != "" && c.now >= d.nextProbe:
		d.bad, d.strikes = "", 0
		c.sendCapacity()
	}
}

// probeAgain probes the bad disks periodically.
func (c *Core) probeAgain() {
	for _, d := range c.allDisks {
		if d.bad != "" && !d.probing && c.now >= d.nextProbe {
			c.probe(d)
		}
	}
}

// diskFailed stops using a disk: its map outputs are lost, its homes gather again on
// another disk, and its attempts are killed, which does not count as their failure.
func (c *Core) diskFailed(d *disk, reason string) {
	if c.cfg.KeepDisks {
		return
	}
	alreadyBad := d.bad != ""
	d.bad, d.nextProbe = reason, c.now+c.cfg.ProbeAgain
	if alreadyBad {
		return
	}
	c.diskFailures++
	c.sendCapacity()
	for _, j := range c.sortedJobs() {
		if !j.dropped {
			c.abandonDisk(j, d)
		}
	}
	if c.noUsableDisk() {
		c.endWithoutDisk(c.diskError(d))
	}
}

func (c *Core) diskError(d *disk) string {
	return fmt.Sprintf("disk %s of tracker %s failed: %s", d.path, c.cfg.Tracker, d.bad)
}

// loseOutput forgets a map output on a failed disk, and reports it lost.
func (c *Core) loseOutput(a *attempt, d *disk) {
	lost := wire.OutputLost{Job: a.job.id, Map: a.id.Task.N, Attempt: a.id.N, Reason: c.diskError(d)}
	c.unreadable(&lost)
	c.dropOutput(a)
	c.send(&lost)
}

func (c *Core) abandonDisk(j *job, d *disk) {
	reason := c.diskError(d)
	for _, a := range slices.Clone(j.attempts) {
		switch {
		case a.disk != d:
		case a.hasOutput():
			c.loseOutput(a, d)
		case a.phase <= running:
			c.kill(a, reason)
		}
	}
	for _, h := range slices.Clone(j.homes) {
		if h.disk != d {
			continue
		}
		for _, a := range j.attempts {
			if a.phase <= running && len(a.runs) > 0 && a.id.Task.N == h.partition {
				c.kill(a, reason)
			}
		}
		c.dropHome(h)
		if to := c.pickDisk(); to != nil {
			c.beginHome(j, to, h.partition, h.gen, h.maps)
		}
	}
}

// endWithoutDisk ends attempts and homes when all disks are bad.
func (c *Core) endWithoutDisk(reason string) {
	for _, a := range slices.Clone(c.active) {
		if a.id.Task.Kind.Slotted() && a.phase <= running {
			c.kill(a, reason)
		}
	}
	for _, j := range c.sortedJobs() {
		for len(j.homes) > 0 {
			c.dropHome(j.homes[0])
		}
	}
}

// Running is an attempt with files on a disk, which it may still be writing.
type Running struct {
	Worker     int // 0: its worker has ended
	Attempt    wire.AttemptID
	Dir        string
	Tmp        string // private /tmp of its worker, if that is isolated; empty: its worker has ended
	LocalBytes int64  // limit of its working directory; 0: none
}

// Running lists the attempts with files on a disk, except those that have succeeded.
func (c *Core) Running(disk int) (list []Running) {
	for _, a := range c.active {
		if a.disk == nil || a.disk.index != disk || a.phase == recording {
			continue
		}
		r := Running{Attempt: a.id, Dir: a.dir(), LocalBytes: a.launch.LocalBytes}
		if a.worker != nil {
			r.Worker, r.Tmp = a.worker.id, path.Join(a.worker.dir, PrivateTmp)
		}
		list = append(list, r)
	}
	return list
}

// noSpace is the system's message for a full disk.
const noSpace = "no space left on device"

// mayBeFull returns the disks of an attempt if its error says that a disk was full. With
// Config.KeepDisks the attempt just fails.
func (c *Core) mayBeFull(a *attempt) (disks []Place) {
	if c.cfg.KeepDisks || !strings.Contains(a.result.Error, noSpace) {
		return nil
	}
	if a.disk != c.state {
		disks = append(disks, Place{a.disk.index, a.disk.path})
	}
	return append(disks, Place{c.state.index, c.state.path}) // of its logs
}

// failedOnFull makes an attempt final that failed on a full disk. Only the attempt that filled
// the disk has failed; others end as killed. If no attempt filled it, this counts against the
// disk, which otherwise would get the same attempts for ever.
func (c *Core) failedOnFull(a *attempt, full *FullDisk) {
	a.result.Error += " (" + full.Reason + ")"
	state := wire.AttemptKilled
	if full.Filler == a.id {
		state = wire.AttemptFailed
	}
	c.finish(a, state, a.result)
	for _, d := range c.allDisks {
		if d.index != full.Disk {
			continue
		}
		c.awaitSpace(d)
		if (full.Filler == wire.AttemptID{}) {
			c.strike(d, "attempts find it full, and none of them has filled it")
		}
	}
}

// slots returns the map slots and the reduce slots.
func (c *Core) slots() [2]int {
	if c.noUsableDisk() {
		return [2]int{}
	}
	return [2]int{c.cfg.MapSlots, c.cfg.ReduceSlots}
}

// sendCapacity reports the slots, the bad disks, and whether the machine is unhealthy.
func (c *Core) sendCapacity() {
	var reasons []string
	for _, d := range c.allDisks {
		if d.bad != "" {
			reasons = append(reasons, fmt.Sprintf("disk %s: %s", d.path, d.bad))
		}
	}
	slots := c.slots()
	c.send(&wire.Capacity{
		MapSlots: slots[0], ReduceSlots: slots[1], Reason: strings.Join(reasons, "; "), DisksAbandoned: c.diskFailures,
		Unhealthy: c.unhealthy, Stops: c.stops,
	})
}

// healthChecked reports a change of the machine's health. The leader decides: running attempts go on.
func (c *Core) healthChecked(ev HealthChecked) {
	if ev.Unhealthy != c.unhealthy {
		c.unhealthy = ev.Unhealthy
		c.sendCapacity()
	}
}

// hasBadDisk reports whether the leader must get a Capacity message after the hello.
func (c *Core) hasBadDisk() bool {
	return slices.ContainsFunc(c.allDisks, func(d *disk) bool { return d.bad != "" })
}
