package tasktracker

import (
	"errors"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
)

// restore verifies the map outputs of an earlier process. It passes good ones to the core
// and removes the others.
func (l *loop) restore(outputs []disks.Leftover) {
	for i := range outputs {
		o := &outputs[i]
		report, err := o.Verify(l.ctx)
		if l.ctx.Err() != nil {
			return // the tracker ends, and the output may be good
		}
		if err == nil && l.tokens.Get(o.Attempt.Task.Job) == "" {
			err = errors.New("the job's token is lost, so it cannot be served")
		}
		if err != nil {
			l.cfg.Logger.Info("a map output of an earlier process is removed", "attempt", o.Attempt, "error", err)
			l.remove(o.Dir)
			continue
		}
		l.event(core.Restored{Disk: o.Disk, Report: *report})
	}
	l.event(core.RestoreEnded{})
	for _, trash := range l.disks.Trash() {
		l.remove(trash)
	}
}

// record writes a map output's report beside it, for a later process.
func (l *loop) record(c core.Record) {
	ev := core.Recorded{Attempt: c.Report.Attempt}
	if err := disks.WriteReport(c.File, c.Report); err != nil {
		ev.Error = err.Error()
		l.cfg.Logger.Warn("cannot keep a map output for a later process", "attempt", c.Report.Attempt, "error", err)
	}
	l.event(ev)
}
