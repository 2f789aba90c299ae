package locality

import "time"

// keep is the weight of the past in moving averages; the newest value has the rest.
const keep = 0.8

func moving(average, x float64) float64 { return keep*average + (1-keep)*x }

// Read is a finished map task's reading of its input.
type Read struct {
	Remote bool
	Bytes  int64
	Took   time.Duration
}

// Meter is what reading a byte costs, locally and remotely, over all jobs. The zero
// Meter has measured nothing. It may be kept from one run to the next.
//
// Remote reads alone move the overhead: that local ones cost none is known, and would
// pull it down only because they are many.
type Meter struct {
	Local    float64 // seconds per byte read locally; 0: not measured
	Overhead float64 // seconds per byte that remote reads take longer
	Remotes  int     // remote reads measured; 0: Overhead is unknown
}

// Add measures a read. Reads of nothing, or that took no time or less as on a clock that
// stands still, tell nothing. As long as no local read is measured a remote one is taken
// to be all overhead, and what the first measured one says is not averaged with it.
func (m *Meter) Add(r Read) {
	if r.Bytes <= 0 || r.Took <= 0 {
		return
	}
	rate := r.Took.Seconds() / float64(r.Bytes)
	if !r.Remote {
		if m.Local == 0 {
			m.Local = rate
			return
		}
		m.Local = moving(m.Local, rate)
		return
	}
	over := max(0, rate-m.Local)
	if m.Remotes++; m.Remotes == 1 {
		m.Overhead = over
		return
	}
	m.Overhead = moving(m.Overhead, over)
}

// Wait is what reading so many bytes remotely should cost; Start if no remote read has
// been measured. It is never above MaxDelay.
func (m *Meter) Wait(bytes int64) time.Duration {
	if m.Remotes == 0 {
		return Start
	}
	return seconds(m.Overhead * float64(max(0, bytes)))
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), MaxDelay.Seconds()) * float64(time.Second))
}

// Average is the delay of a job phase under Paper.
type Average time.Duration

// Add is line 5 of Algorithm 1: the mean of what it was and a task's remote reading
// time, which is 0 for a local task (section IV).
func (a *Average) Add(remote time.Duration) {
	*a = (*a + Average(min(max(remote, 0), MaxDelay))) / 2
}

// Pace is how long a job phase's tasks take, as moving averages; local and remote ones
// apart, for the remote ones are longer by what locality is to save. 0: none has ended.
type Pace struct{ Local, Remote time.Duration }

// Add measures a finished task. One that took no time tells nothing.
func (p *Pace) Add(remote bool, took time.Duration) {
	if took <= 0 {
		return
	}
	mean := &p.Local
	if remote {
		mean = &p.Remote
	}
	if *mean == 0 {
		*mean = took
		return
	}
	*mean = seconds(moving(mean.Seconds(), took.Seconds()))
}

// Left is how long a running task should take yet, 0 if it is late; not ok if no task of
// its kind has ended.
func (p Pace) Left(remote bool, ran time.Duration) (left time.Duration, ok bool) {
	mean := p.Local
	if remote {
		mean = p.Remote
	}
	return max(0, mean-ran), mean > 0
}

// Node is a live node with a replica of a task's split.
type Node struct {
	Releases []time.Duration // by slot, ascending: until it should be released; 0: it is free or late
	Ahead    float64         // tasks that will take slots there before this one
	Task     time.Duration   // what one of them takes
}

// mostAhead keeps counts of tasks within whole numbers.
const mostAhead = 1e9

// Predict is the time until a slot on one of the nodes takes the task, those ahead of it
// counted: tasks take the slots in the order of their releases, round after round. Ahead
// below 0 or NaN is none. Nodes without slots never do; not ok if there is no other.
func Predict(nodes []Node) (wait time.Duration, ok bool) {
	for _, n := range nodes {
		slots := len(n.Releases)
		if slots == 0 {
			continue
		}
		ahead := 0
		if n.Ahead > 0 {
			ahead = int(min(n.Ahead, mostAhead))
		}
		at := n.Releases[ahead%slots] + seconds(float64(ahead/slots)*n.Task.Seconds())
		if !ok || at < wait {
			wait, ok = at, true
		}
	}
	return wait, ok
}
