package forecast

import (
	"cmp"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// leastTask is what a task takes at least, on a clock that stands still too.
const leastTask = time.Millisecond

// Measured is how long the tasks of a phase took that have succeeded.
type Measured struct {
	All  history.Sum
	Warm history.Sum // of those whose worker process had run before
}

// count adds a task.
func (m *Measured) count(took time.Duration, cold bool) {
	m.All.Count(took)
	if !cold {
		m.Warm.Count(took)
	}
}

// Measures is what a job's tasks have shown so far. The zero Measures are those of a job of
// which no task has run.
type Measures struct {
	Phases   [2]Measured
	Reads    wire.Reads // of maps that have succeeded
	Workers  int        // processes started
	trackers []*block   // by the number of the tracker / the length of a block; nil where it had nothing to do
}

// onTracker is what a job has on one tracker: its workers, which are kept after a success,
// so that only the first tasks on each tracker also start processes, and its tasks.
type onTracker struct {
	busy, workers int16
	tasks         [2]int32 // that succeeded, by phase
	took          [2]time.Duration
}

// block is trackers whose numbers are near each other: many jobs have something to do
// with a few trackers only.
type block [64]onTracker

// find is what the job has on the tracker with a number, or nil.
func (m *Measures) find(tracker int32) *onTracker {
	i, k := int(tracker)/len(block{}), int(tracker)%len(block{})
	if i >= len(m.trackers) || m.trackers[i] == nil {
		return nil
	}
	return &m.trackers[i][k]
}

// at is the same, made when there is none.
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

// Began notes an attempt that begins on the tracker with a number. It says whether a worker
// has to be started for it.
func (m *Measures) Began(tracker int32) (cold bool) {
	o := m.at(tracker)
	o.busy++
	started := max(0, o.busy-o.workers)
	o.workers += started
	m.Workers += int(started)
	return started > 0
}

// Over notes that an attempt runs no more.
func (m *Measures) Over(tracker int32) { m.at(tracker).busy-- }

// WorkerEnded notes the end of a worker with its attempt, which failed or was killed, after
// it is over.
func (m *Measures) WorkerEnded(tracker int32) {
	o := m.at(tracker)
	o.workers = max(o.busy, o.workers-1)
}

// Lost notes that all workers on a tracker are gone.
func (m *Measures) Lost(tracker int32) {
	if o := m.find(tracker); o != nil {
		o.workers = 0
	}
}

// Count adds a task of a phase that has succeeded on a tracker. It is cold if a worker was
// started for it.
func (m *Measures) Count(phase int, tracker int32, took time.Duration, cold bool) {
	took = max(took, leastTask)
	m.Phases[phase].count(took, cold)
	o := m.at(tracker)
	o.tasks[phase]++
	o.took[phase] += took
}

// On is the tasks of a phase that succeeded on a tracker.
func (m *Measures) On(tracker int32, phase int) history.Sum {
	o := m.find(tracker)
	if o == nil {
		return history.Sum{}
	}
	return history.Sum{Tasks: int(o.tasks[phase]), Took: o.took[phase]}
}

// Overheads is what jobs and tasks take besides their work, as it was of late.
type Overheads struct {
	Close  time.Duration // from a job's last task to its end
	SetUp  time.Duration // from a job's beginning to when its maps can be launched
	WarmUp time.Duration // by how much longer a task takes that also starts its process
}

// Closed takes in how long a job took to close.
func (o *Overheads) Closed(took time.Duration) { o.Close = smoothed(o.Close, took) }

// WasSetUp takes in how long a job took to be set up.
func (o *Overheads) WasSetUp(took time.Duration) { o.SetUp = smoothed(o.SetUp, took) }

// fewWarm is how many tasks in processes that ran before tell what it costs to start one.
const fewWarm = 4

// Warmed takes in what a job has shown of a phase, after a task in a process that ran
// before has been counted.
func (o *Overheads) Warmed(m *Measured) {
	if n := m.All.Tasks - m.Warm.Tasks; m.Warm.Tasks == fewWarm && n > 0 {
		o.WarmUp = smoothed(o.WarmUp, max(0, (m.All.Took-m.Warm.Took)/time.Duration(n)-m.Warm.Mean()))
	}
}

// smoothed is a mean in which the last value counts for a quarter, and the first for all.
func smoothed(old, last time.Duration) time.Duration { return (3*cmp.Or(old, last) + last) / 4 }

// Left is what is left of something that usually takes so long and has run since then, 0:
// it has not begun.
func Left(usual, since, now time.Duration) time.Duration {
	if since == 0 {
		return usual
	}
	return max(0, usual-(now-since))
}
