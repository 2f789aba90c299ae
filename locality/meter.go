package locality

import "time"

// pastWeight is the weight of the past in moving averages; the newest value has the rest.
const pastWeight = 0.8

func movingAverage(average, x float64) float64 { return pastWeight*average + (1-pastWeight)*x }

// Read is a finished map task's reading of its input.
type Read struct {
	Remote bool
	Bytes  int64
	Took   time.Duration
}

// Meter measures the cost of reading a byte, locally and remotely, over all jobs. The zero
// Meter has no measurements. Callers may keep it between runs.
//
// Only remote reads change Overhead. Local reads are many and have no overhead, so they would pull
// the average down to nearly 0.
type Meter struct {
	Local       float64 // seconds per byte read locally; 0: not measured
	Overhead    float64 // extra seconds per byte of a remote read
	RemoteReads int     // remote reads measured; 0: Overhead is unknown
}

// Add measures a read. It ignores reads without bytes or time. Until a local read is measured,
// the whole time of a remote read counts as overhead.
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
		m.Local = movingAverage(m.Local, rate)
		return
	}
	over := max(0, rate-m.Local)
	if m.RemoteReads++; m.RemoteReads == 1 {
		m.Overhead = over
		return
	}
	m.Overhead = movingAverage(m.Overhead, over)
}

// Wait estimates the extra time of a remote read of this size, at most MaxDelay. It returns Start
// if no remote read is measured.
func (m *Meter) Wait(bytes int64) time.Duration {
	if m.RemoteReads == 0 {
		return Start
	}
	return seconds(m.Overhead * float64(max(0, bytes)))
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), MaxDelay.Seconds()) * float64(time.Second))
}

// Average is the delay of a job phase under Paper.
type Average time.Duration

// Add applies line 5 of Algorithm 1: it takes the mean of the old value and a task's remote
// reading time, which is 0 for a local task (section IV).
func (a *Average) Add(remote time.Duration) {
	*a = (*a + Average(min(max(remote, 0), MaxDelay))) / 2
}

// Pace has moving averages of task durations of a job phase: one for tasks with local input, and
// one for remote tasks, which take longer. 0: no such task has ended.
type Pace struct{ Local, Remote time.Duration }

// Add measures a finished task. It ignores tasks that took no time.
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
	*mean = seconds(movingAverage(mean.Seconds(), took.Seconds()))
}

// Left estimates the remaining time of a running task; 0 if it is late. ok is false if no such
// task has ended.
func (p Pace) Left(remote bool, ran time.Duration) (left time.Duration, ok bool) {
	mean := p.Local
	if remote {
		mean = p.Remote
	}
	return max(0, mean-ran), mean > 0
}

// Node is a live node with a replica of a task's split.
type Node struct {
	Releases []time.Duration // by slot, ascending: time until its release; 0: it is free or late
	Ahead    float64         // tasks that will take slots there before this one
	Task     time.Duration   // duration of such a task
}

// maxAhead lets the number of tasks ahead fit in an int.
const maxAhead = 1e9

// Predict returns the time until a slot on one of the nodes takes the task, after the tasks
// ahead of it. Tasks take slots in the order of the releases, round after round. Node.Ahead below
// 0 or NaN counts as 0. ok is false if no node has slots.
func Predict(nodes []Node) (wait time.Duration, ok bool) {
	for _, n := range nodes {
		slots := len(n.Releases)
		if slots == 0 {
			continue
		}
		ahead := 0
		if n.Ahead > 0 {
			ahead = int(min(n.Ahead, maxAhead))
		}
		at := n.Releases[ahead%slots] + seconds(float64(ahead/slots)*n.Task.Seconds())
		if !ok || at < wait {
			wait, ok = at, true
		}
	}
	return wait, ok
}
