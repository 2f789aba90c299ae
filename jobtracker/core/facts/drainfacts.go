package facts

import "fmt"

// Draining is the progress of a task tracker's drain. It holds for every process with the
// tracker's name, until it is undone.
type Draining struct {
	N         int    `msgpack:"n"` // the Drain's number
	Process   uint64 `msgpack:"p"` // process that is drained and ends by itself; 0: none yet
	IdleSteps int    `msgpack:"r"` // number of time steps for which the tracker was idle
}

// Drain begins the drain of a tracker, or undoes it.
type Drain struct {
	N       int    `msgpack:"n"`
	Tracker string `msgpack:"t"`
	Undo    bool   `msgpack:"u"`
}

func (*Drain) number() byte { return 20 }
func (x *Drain) Name() string {
	if x.Undo {
		return fmt.Sprintf("drain %d not %s", x.N, x.Tracker)
	}
	return fmt.Sprintf("drain %d %s", x.N, x.Tracker)
}
func (x *Drain) Fits(f *Facts) bool { return x.N == f.drains+1 && x.Tracker != "" }
func (x *Drain) apply(f *Facts, _ uint64) {
	f.drains = x.N
	switch d := f.draining[x.Tracker]; {
	case x.Undo:
		delete(f.draining, x.Tracker)
	case d == nil || d.Process != 0: // a tracker that was drained and restarted drains again
		f.draining[x.Tracker] = &Draining{N: x.N}
	}
}

// DrainIdle says for how many time steps a draining tracker was idle. The leader chooses the
// length of a step.
type DrainIdle struct {
	N       int    `msgpack:"n"` // of the Drain
	Tracker string `msgpack:"t"`
	Steps   int    `msgpack:"s"`
}

func (*DrainIdle) number() byte   { return 23 }
func (x *DrainIdle) Name() string { return fmt.Sprintf("drain-idle %d %s/%d", x.Steps, x.Tracker, x.N) }
func (x *DrainIdle) Fits(f *Facts) bool {
	d := f.draining[x.Tracker]
	return d != nil && d.N == x.N && d.Process == 0 && x.Steps > d.IdleSteps
}
func (x *DrainIdle) apply(f *Facts, _ uint64) {
	d := *f.draining[x.Tracker]
	d.IdleSteps = x.Steps
	f.draining[x.Tracker] = &d
}

// Drained says that an incarnation has no output left that a job needs. A process that starts
// with the same name later gets no work, but is not told to end.
type Drained struct {
	N           int    `msgpack:"n"` // of the Drain
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
}

func (*Drained) number() byte   { return 21 }
func (x *Drained) Name() string { return fmt.Sprintf("drained %s/%d", x.Tracker, x.Incarnation) }
func (x *Drained) Fits(f *Facts) bool {
	d, t := f.draining[x.Tracker], f.trackers[x.Tracker]
	return d != nil && d.N == x.N && d.Process == 0 && t != nil && t.Incarnation == x.Incarnation
}
func (x *Drained) apply(f *Facts, _ uint64) {
	d := *f.draining[x.Tracker]
	d.Process = f.trackers[x.Tracker].Process
	f.draining[x.Tracker] = &d
}
