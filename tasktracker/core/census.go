package core

// Census is how many there are of everything on this task tracker, at one moment.
type Census struct {
	Slots    [2]int // maps and reduces that may run
	Running  [2]int // attempts of maps and reduces with a worker
	Waiting  int    // attempts that wait for a slot
	Services int    // attempts of other kinds that run
	Workers  int    // processes
	Idle     int    // of them without an attempt
	Homes    int    // partitions that are gathered here
	Fetching int    // fetches from other task trackers
	Disks    int
	BadDisks int // disks that are not used
	Healthy  bool
}

// Census counts.
func (c *Core) Census() Census {
	x := Census{
		Slots: c.slots(), Workers: len(c.workers), Idle: len(c.idle), Fetching: c.fetching,
		Disks: len(c.allDisks), Healthy: c.unhealthy == "",
	}
	for _, a := range c.active {
		switch {
		case a.phase == waiting:
			x.Waiting++
		case a.worker == nil: // its log is read
		case a.id.Task.Kind.Slotted():
			x.Running[slotOf(a)]++
		default:
			x.Services++
		}
	}
	for _, j := range c.jobs { // any order: it only counts
		x.Homes += len(j.homes)
	}
	for _, d := range c.allDisks {
		if d.bad != "" {
			x.BadDisks++
		}
	}
	return x
}
