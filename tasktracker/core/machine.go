package core

import "github.com/quernmr/quern/wire"

// machine is what users see of this machine. The next heartbeat after a measurement has it.
type machine struct {
	load          float64
	spaces        map[int]Space // by index of the disk
	failedFetches int64
	unsent        bool // there is a measurement that the leader has not got
}

func (c *Core) machineMeasured(ev MachineMeasured) {
	m := &c.machine
	m.load, m.unsent = ev.Load, true
	m.spaces = make(map[int]Space, len(ev.Spaces))
	for _, s := range ev.Spaces {
		m.spaces[s.Disk] = s
	}
}

// take returns the state of the machine for the next heartbeat; nil: there is nothing new.
func (m *machine) take(c *Core) *wire.Machine {
	if !m.unsent {
		return nil
	}
	m.unsent = false
	x := &wire.Machine{Load: m.load, FailedFetches: m.failedFetches}
	for _, d := range c.allDisks[:min(len(c.allDisks), wire.MaxDisks)] {
		s := m.spaces[d.index]
		x.Disks = append(x.Disks, wire.Disk{Path: d.path, Free: s.Free, Total: s.Total, Failed: d.bad})
	}
	return x
}
