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
		l.event(ev)
	})
}

// logDisks logs the disks that the core has stopped using, or uses again, since the last call.
func (l *loop) logDisks() {
	for path, bad := range l.core.Disks() {
		switch before := l.badDisks[path]; {
		case bad != "" && before == "":
			l.cfg.Logger.Error("disk failed", "path", path, "error", bad)
			l.badDisks[path] = bad
		case bad == "" && before != "":
			l.cfg.Logger.Info("disk works again, and is used", "path", path)
			delete(l.badDisks, path)
		}
	}
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

// endAttempt ends an attempt with too large files, if it still runs there.
func (l *loop) endAttempt(disk int, attempt core.Running, reason string) {
	l.post(func() {
		if slices.Contains(l.core.Running(disk), attempt) {
			l.step(core.Exceeded{Worker: attempt.Worker, Reason: reason, Space: true})
		}
	})
}

// reportDisks reports the disks that were bad at the start to the core.
func (l *loop) reportDisks() {
	bad := l.disks.BadAtStart()
	for _, i := range slices.Sorted(maps.Keys(bad)) {
		l.event(core.DiskProbed{Disk: i, Error: bad[i].Error()})
	}
}
