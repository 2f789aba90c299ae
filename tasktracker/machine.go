package tasktracker

import (
	"fmt"
	"os"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
)

// machinePeriod is the time between two measurements of the machine. The first one comes soon, for users who look at
// a new task tracker.
const (
	machinePeriod = 5 * time.Second
	machineFirst  = 500 * time.Millisecond
)

// watchMachine passes the load and the space on disks to the core, until the loop ends.
func (l *loop) watchMachine() {
	pause := time.NewTimer(machineFirst)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			return
		}
		l.event(core.MachineMeasured{Load: load(), Spaces: l.spaceGuard.Spaces(len(l.cfg.Disks))})
		pause.Reset(machinePeriod)
	}
}

// load returns the mean number of processes that ran or waited to in the last minute; 0: the system does not tell.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	return parseLoad(string(text))
}

func parseLoad(text string) (minute float64) {
	if _, err := fmt.Sscan(text, &minute); err != nil || !(minute >= 0) {
		return 0
	}
	return minute
}
