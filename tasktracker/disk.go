package tasktracker

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
)

// probe probes a disk, after the pending removals.
func (l *loop) probe(c core.Probe) {
	removed := make(chan struct{})
	l.diskWork.Put(func() { close(removed) })
	l.detached(func() {
		select {
		case <-removed:
		case <-time.After(disks.RemoveWait): // the removals hang too
		}
		ev := core.DiskProbed{Disk: c.Disk}
		err := l.spaceGuard.Probe(l.ctx, c.Disk, c.Path)
		if err != nil {
			ev.Error = err.Error()
		}
		l.post(func() {
			if err != nil {
				l.cfg.Logger.Error("disk failed", "path", c.Path, "error", err)
			}
			l.step(ev)
		})
	})
}

// running returns the attempts on a disk; nil if the loop has ended.
func (l *loop) running(disk int) []core.Running {
	list := make(chan []core.Running, 1)
	l.post(func() { list <- l.core.Running(disk) })
	select {
	case r := <-list:
		return r
	case <-l.done:
		return nil
	}
}

// endAttempt ends an attempt that filled a disk, if it still runs there.
func (l *loop) endAttempt(disk int, attempt core.Running, reason string) {
	l.post(func() {
		if slices.Contains(l.core.Running(disk), attempt) {
			l.step(core.Exceeded{Worker: attempt.Worker, Reason: reason})
		}
	})
}

// reportDisks reports the disks that were bad at the start to the core.
func (l *loop) reportDisks() {
	bad := l.disks.BadAtStart()
	for _, i := range slices.Sorted(maps.Keys(bad)) {
		l.cfg.Logger.Error("disk failed", "path", l.cfg.Disks[i], "error", bad[i])
		l.event(core.DiskProbed{Disk: i, Error: bad[i].Error()})
	}
}
