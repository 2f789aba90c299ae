package forecast

import (
	"cmp"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// leastTask is the least time of a task, since simulated clocks may not advance.
const minTaskTime = time.Millisecond

// Measured sums the times of a phase's succeeded tasks.
type Measured struct {
	All  history.Sum
	Warm history.Sum // of those that ran in a running worker process
}

// count adds a task.
func (m *Measured) count(took time.Duration, cold bool) {
	m.All.Count(took)
	if !cold {
		m.Warm.Count(took)
	}
}

// Measures holds the measured times of a job's tasks. The zero value is of a job without
// attempts so far.
type Measures struct {
	Phases   [2]Measured
	Reads    wire.Reads // of maps that have succeeded
	Workers  int        // processes started
	trackers []*block   // by tracker number / block length; nil: no attempts there
}

// onTracker is a job's workers and tasks on one tracker. Workers stay after a success, so that
// only the first tasks on each tracker also start processes.
type onTracker struct {
	busy, workers int16
	tasks         [2]int32 // that succeeded, by phase
	took          [2]time.Duration
}

// block is trackers with consecutive numbers. Many jobs have attempts on few trackers only.
type block [64]onTracker

// find returns the entry of a tracker, or nil.
func (m *Measures) find(tracker int32) *onTracker {
	i, k := int(tracker)/len(block{}), int(tracker)%len(block{})
	if i >= len(m.trackers) || m.trackers[i] == nil {
		return nil
	}
	return &m.trackers[i][k]
}

// at returns the entry of a tracker, and makes it if there is none.
func (m *Measures) at(tracker int32) *onTracker {
	if o := m.find(tracker); o != nil {
		return o
	}
	i := int(tracker) / len(block{})
	if more := i + 1 - len(m.trackers); more > 0 {
		m.trackers = append(m.trackers, make([]*block, more)...)
	}
	m.trackers[i] = new(block)
	return m.find(tracker)
}

// Began notes that an attempt begins on a tracker. It reports whether a worker must start.
func (m *Measures) AttemptBegan(tracker int32) (cold bool) {
	o := m.at(tracker)
	o.busy++
	started := max(0, o.busy-o.workers)
	o.workers += started
	m.Workers += int(started)
	return started > 0
}

// Ended notes that an attempt has ended.
func (m *Measures) AttemptEnded(tracker int32) { m.at(tracker).busy-- }

// WorkerEnded notes that a worker ended with its attempt, which failed or was killed. The
// caller has called Ended.
func (m *Measures) WorkerEnded(tracker int32) {
	o := m.at(tracker)
	o.workers = max(o.busy, o.workers-1)
}

// Lost notes that all workers on a tracker are gone.
func (m *Measures) TrackerLost(tracker int32) {
	if o := m.find(tracker); o != nil {
		o.workers = 0
	}
}

// Count adds a task of a phase that succeeded on a tracker. cold: a worker was started for it.
func (m *Measures) CountTask(phase int, tracker int32, took time.Duration, cold bool) {
	took = max(took, minTaskTime)
	m.Phases[phase].count(took, cold)
	o := m.at(tracker)
	o.tasks[phase]++
	o.took[phase] += took
}

// On sums the tasks of a phase that succeeded on a tracker.
func (m *Measures) TasksOn(tracker int32, phase int) history.Sum {
	o := m.find(tracker)
	if o == nil {
		return history.Sum{}
	}
	return history.Sum{Tasks: int(o.tasks[phase]), Took: o.took[phase]}
}

// Overheads is the time that jobs and tasks take besides their work: recent averages.
type Overheads struct {
	Close  time.Duration // from a job's last task to its end
	SetUp  time.Duration // from a job's begin until its maps can be launched
	WarmUp time.Duration // additional time of a task that also starts its process
}

// Closed adds the time in which a job closed.
func (o *Overheads) AddClose(took time.Duration) { o.Close = smoothed(o.Close, took) }

// WasSetUp adds the time in which a job was set up.
func (o *Overheads) AddSetUp(took time.Duration) { o.SetUp = smoothed(o.SetUp, took) }

// fewWarm is the number of tasks in running processes after which Warmed measures a job.
const fewWarm = 4

// Warmed updates WarmUp from a phase of a job. Callers call it after they count a task that
// ran in a running process.
func (o *Overheads) UpdateWarmUp(m *Measured) {
	if n := m.All.Tasks - m.Warm.Tasks; m.Warm.Tasks == fewWarm && n > 0 {
		o.WarmUp = smoothed(o.WarmUp, max(0, (m.All.Took-m.Warm.Took)/time.Duration(n)-m.Warm.Mean()))
	}
}

// smoothed averages with weight 1/4 for the last value; the first value is taken as it is.
func smoothed(old, last time.Duration) time.Duration { return (3*cmp.Or(old, last) + last) / 4 }

// Left is the rest of a step that usually takes so long and began at since; 0: it has not begun.
func Remaining(usual, since, now time.Duration) time.Duration {
	if since == 0 {
		return usual
	}
	return max(0, usual-(now-since))
}
