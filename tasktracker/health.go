package tasktracker

import (
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/healthscript"
	"github.com/quernmr/quern/tasktracker/process"
)

// watchHealth runs the health script again and again, and passes its results to the core.
func (l *loop) watchHealth() {
	last := ""
	for {
		unhealthy := healthscript.Run(l.ctx, l.cfg.Health.Script, l.cfg.Health.Timeout, process.StartChild)
		if starter, ok := l.cfg.Workers.(*process.Starter); ok {
			starter.EndStrangers()
		}
		if l.ctx.Err() != nil {
			return
		}
		switch {
		case unhealthy == last:
		case unhealthy == "":
			l.cfg.Logger.Info("this machine is healthy again")
		default:
			l.cfg.Logger.Warn("this machine is unhealthy", "reason", unhealthy)
		}
		last = unhealthy
		l.event(core.HealthChecked{Unhealthy: unhealthy})
		pause := time.NewTimer(l.cfg.Health.Interval)
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
			return
		}
	}
}
