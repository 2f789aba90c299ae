package forecast

import (
	"cmp"
	"iter"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// minTaskTime is the shortest task time: a simulated clock may stand still during a task.
const minTaskTime = time.Millisecond

// Measured sums the times of a phase's succeeded tasks.
type Measured struct {
	All  history.Sum
	Warm history.Sum // tasks without the start of a worker process
}

// count adds a task.
func (m *Measured) count(took time.Duration, cold bool) {
	m.All.Count(took)
	if !cold {
		m.Warm.Count(took)
	}
}

// Sum returns the times of tasks in processes that ran already, or of all if those are few.
func (m *Measured) Sum() *history.Sum {
	if m.Warm.Tasks >= fewWarm {
		return &m.Warm
	}
	return &m.All
}

// Measures holds the measured times of a job's tasks. The zero value has none.
type Measures struct {
	Phases   [2]Measured
	Reads    wire.Reads // bytes that succeeded maps have read
	Workers  int        // processes started
	trackers []*block   // by tracker number / block length; nil: no attempts there
}

// onTracker is a job's workers and tasks on one tracker. A worker runs further tasks after a
// success, so only the first tasks on a tracker start processes.
type onTracker struct {
	busy, workers int16
	incarnation   uint32           // of the tracker that has the workers
	tasks         [2]int32         // succeeded ones, by phase
	took          [2]time.Duration // sum of their times
}

// block has trackers with consecutive numbers: many jobs use only a few trackers.
type block [64]onTracker

// find returns the entry of a tracker, or nil.
func (m *Measures) find(tracker int32) *onTracker {
	i, k := int(tracker)/len(block{}), int(tracker)%len(block{})
	if i >= len(m.trackers) || m.trackers[i] == nil {
		return nil
	}
	return &m.trackers[i][k]
}

// at returns the entry of a tracker, which it may have to make.
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

// AttemptBegan notes that an attempt begins on a tracker. It reports whether a worker must start: the workers of
// an earlier incarnation have ended with it.
func (m *Measures) AttemptBegan(tracker int32, incarnation uint32) (cold bool) {
	o := m.at(tracker)
	if o.incarnation != incarnation {
		o.incarnation, o.workers = incarnation, 0
	}
	o.busy++
	started := max(0, o.busy-o.workers)
	o.workers += started
	m.Workers += int(started)
	return started > 0
}

// AttemptEnded notes that an attempt has ended.
func (m *Measures) AttemptEnded(tracker int32) { m.at(tracker).busy-- }

// WorkerEnded notes that a worker ended with its attempt, which failed or was killed. The
// caller has called AttemptEnded.
func (m *Measures) WorkerEnded(tracker int32) {
	o := m.at(tracker)
	o.workers = max(o.busy, o.workers-1)
}

// CountTask adds a task that succeeded on a tracker. cold means that a worker was started for it.
func (m *Measures) CountTask(phase int, tracker int32, took time.Duration, cold bool) {
	took = max(took, minTaskTime)
	m.Phases[phase].count(took, cold)
	o := m.at(tracker)
	o.tasks[phase]++
	o.took[phase] += took
}

// TasksOn sums the tasks of a phase that succeeded on a tracker.
func (m *Measures) TasksOn(tracker int32, phase int) history.Sum {
	o := m.find(tracker)
	if o == nil {
		return history.Sum{}
	}
	return history.Sum{Tasks: int(o.tasks[phase]), Took: o.took[phase]}
}

// Trackers yields the numbers of the trackers where tasks of a phase succeeded, in order, with their sums.
func (m *Measures) Trackers(phase int) iter.Seq2[int32, history.Sum] {
	return func(yield func(int32, history.Sum) bool) {
		for i, b := range m.trackers {
			if b == nil {
				continue
			}
			for k := range b {
				if o := &b[k]; o.tasks[phase] > 0 && !yield(int32(i*len(b)+k), history.Sum{Tasks: int(o.tasks[phase]), Took: o.took[phase]}) {
					return
				}
			}
		}
	}
}

// Overheads are recent averages over all jobs.
type Overheads struct {
	Close  time.Duration    // besides the work of the tasks: from a job's last task to its end
	SetUp  time.Duration    // from a job's begin to its first possible launch of a map
	Tasks  [2]time.Duration // of a task of any job, by phase
	WarmUp time.Duration    // additional time of a task that starts a worker process

	warmUpWeight, warmUpSum float64 // of jobs, and of their seconds
}

// AddTask adds the time of a task.
func (o *Overheads) AddTask(phase int, took time.Duration) {
	o.Tasks[phase] = smoothed(o.Tasks[phase], max(took, minTaskTime))
}

// AddClose adds a job's time from its last task to its end.
func (o *Overheads) AddClose(took time.Duration) { o.Close = smoothed(o.Close, took) }

// AddSetUp adds a job's setup time.
func (o *Overheads) AddSetUp(took time.Duration) { o.SetUp = smoothed(o.SetUp, took) }

// fewWarm is the number of warm tasks, and of others, that say something about WarmUp.
const fewWarm = 4

// AddWarmUp updates WarmUp from a phase of a job that has ended. Jobs count by the precision of their difference. Before
// any job, a second is much.
func (o *Overheads) AddWarmUp(m *Measured) {
	cold := float64(m.All.Tasks - m.Warm.Tasks)
	if m.Warm.Tasks < fewWarm || cold < fewWarm {
		return
	}
	differ := (m.All.Took-m.Warm.Took).Seconds()/cold - m.Warm.Mean().Seconds()
	weight := 1 / (square(m.Warm.Mean().Seconds()*m.Warm.Deviation())*(1/cold+1/float64(m.Warm.Tasks)) + 1e-6)
	const keep = 0.75
	o.warmUpWeight, o.warmUpSum = keep*o.warmUpWeight+weight, keep*o.warmUpSum+weight*differ
	o.WarmUp = Duration(max(0, o.warmUpSum/(o.warmUpWeight+1)))
}

// smoothed is a moving average with weight 1/4 for the last value. old is 0 before the first.
func smoothed(old, last time.Duration) time.Duration { return (3*cmp.Or(old, last) + last) / 4 }

// Remaining is the rest of a step with its usual time. since is its begin; 0: it has not begun.
func Remaining(usual, since, now time.Duration) time.Duration {
	if since == 0 {
		return usual
	}
	return max(0, usual-(now-since))
}
