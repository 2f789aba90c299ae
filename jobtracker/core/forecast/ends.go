package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler"
)

// Cluster is the state of the cluster for a forecast. Times are on the caller's clock.
type Cluster struct {
	Now      time.Duration
	Slots    [2]int  // by phase
	Fallback [2]Task // for jobs without measured times, by phase; see Mean

	Bandwidth Bandwidth
	Overheads Overheads

	Load  Load
	Later scheduler.Later // which slots the jobs of the future get
}

// Job is the state of a job that has not ended.
type Job struct {
	N       int // job number
	Phases  [2]Phase
	Workers int // worker processes started for it

	// Active means that its tasks have slots or wait for them. A job is not active before it
	// begins, while it stops or is suspended, or until trackers have reported its outputs.
	Active bool

	Rank       [2]int        // position in the order in which jobs get slots, by phase
	MapsEnd    time.Duration // end of its maps in the plan in force; 0: not in the plan
	WholeTasks bool          // MapsEnd considers that tasks are not divisible

	Shuffle Transfer

	Closing      bool // all its tasks have ended, but not the job
	ClosingSince time.Duration

	Upcoming *Upcoming // nil if the job has begun, or has no history
}

// Transfer is the rest of a job's shuffle.
type Transfer struct {
	BytesLeft float64 // 0: the shuffle has ended, or the job has none
	Homes     int     // trackers that fetch it
	Turn      int     // position in the plan in force, from 1; 0: not in the plan
}

// Upcoming describes a job that has not begun, by the last job of the same name.
type Upcoming struct {
	Tasks [2]int // by phase
	After []int  // numbers of the jobs from which it reads output
}

// Estimate is the forecast of a job. It assumes that the plans in force stay, no job is
// submitted and nothing is lost. An end is Never if it cannot be predicted.
type Estimate struct {
	N         int        // the job's number
	Tasks     [2]Task    // by phase
	TasksLeft [2]int     // by phase
	Work      [2]float64 // slot-seconds left, by phase

	MapsEnd, ShuffleEnd, End time.Duration

	Measured bool  // task times of this job, or of the last one with its name, are known
	Range    Range // around End; zero if End is Never, and before Measured

	// Soonest is the earliest end before Measured, if tasks of other jobs suggest it; 0: none is known.
	Soonest time.Duration

	maps, reduces moments // from now to MapsEnd, and from ShuffleEnd to End
}

// Forecast holds the estimates of all jobs, sorted by number.
type Forecast []Estimate

// Of returns the estimate of the job with a number, or nil.
func (f Forecast) Of(n int) *Estimate {
	i, ok := slices.BinarySearchFunc(f, n, func(e Estimate, n int) int { return cmp.Compare(e.N, n) })
	if !ok {
		return nil
	}
	return &f[i]
}

// Predict predicts the ends of jobs. The jobs must be sorted by number.
//
// The plan gives the end of a phase. If it is fluid, with divisible tasks, a delay is added since
// the last tasks do not end together. Homes gather while maps run, so the shuffle ends with the
// maps or later. Reduces follow the shuffle, in slots that other jobs leave free.
func Predict(c *Cluster, jobs []Job) Forecast {
	p := NewPrediction(c, jobs)
	for done := false; !done; {
		_, done = p.Advance(len(jobs) + 1)
	}
	return p.Result()
}

// Prediction is a Predict in pieces, see package pieces. Its arguments must not change meanwhile.
type Prediction struct {
	c    *Cluster
	jobs []Job
	f    Forecast

	stages []stage    // that are left
	begun  bool       // the first of them
	order  []int      // jobs that it still visits
	slots  slotTimes  // of reduces
	differ [2]float64 // relative error of the time that tasks of other jobs take, by phase
	work   float64    // of the jobs so far, in slot-seconds of maps
}

// stage is a part of a prediction: it begins, and then visits jobs one after the other.
type stage struct {
	begin func(*Prediction) // sets order; it is a piece
	visit func(p *Prediction, i int)
	costs bool // visits cost more if tasks are running
}

// NewPrediction begins a prediction.
func NewPrediction(c *Cluster, jobs []Job) *Prediction {
	return &Prediction{c: c, jobs: jobs, f: make(Forecast, 0, len(jobs)), stages: []stage{
		{(*Prediction).beginMaps, (*Prediction).predictMaps, true},
		{(*Prediction).predictShuffles, nil, false},
		{(*Prediction).beginReduces, (*Prediction).predictReduces, true},
		{(*Prediction).beginUpcoming, (*Prediction).predictUpcoming, false},
		{(*Prediction).all, (*Prediction).predictRange, false},
	}}
}

// beginParts is how many jobs the begin of a stage handles in the time of an entry.
const beginParts = 8

// visitCost is the time of a visit in entries, see package pieces.
func (p *Prediction) visitCost(i int) int {
	j, e := &p.jobs[i], &p.f[i]
	if !p.stages[0].costs || !j.Active || e.TasksLeft == [2]int{} {
		return 1
	}
	return 10 + 4*min(maxAges, max(j.Phases[Map].Running, j.Phases[Reduce].Running))
}

// Advance handles entries, at least one.
func (p *Prediction) Advance(budget int) (spent int, done bool) {
	for ; spent < budget && len(p.f) < len(p.jobs); spent++ {
		p.f = append(p.f, p.c.estimate(&p.jobs[len(p.f)]))
	}
	if len(p.f) < len(p.jobs) {
		return spent, false
	}
	for len(p.stages) > 0 {
		cost := 1 + len(p.jobs)/beginParts
		if p.begun && len(p.order) > 0 {
			cost = p.visitCost(p.order[0])
		}
		switch {
		case p.begun && len(p.order) == 0:
			p.stages, p.begun = p.stages[1:], false
			continue
		case spent > 0 && spent+cost > budget:
			return spent, false
		case !p.begun:
			p.order = nil
			p.stages[0].begin(p)
			p.begun = true
		default:
			p.stages[0].visit(p, p.order[0])
			p.order = p.order[1:]
		}
		spent += cost
	}
	return spent, true
}

// all makes a stage visit all jobs.
func (p *Prediction) all() {
	p.order = make([]int, len(p.jobs))
	for i := range p.order {
		p.order[i] = i
	}
}

// Result is the forecast, after the last piece.
func (p *Prediction) Result() Forecast { return p.f }

// estimate computes a job's estimate without its ends.
func (c *Cluster) estimate(j *Job) Estimate {
	e := Estimate{N: j.N, MapsEnd: Never, ShuffleEnd: Never, End: Never}
	for i := range j.Phases {
		p := &j.Phases[i]
		t := p.Task(c.Overheads.WarmUp)
		if t.Time == 0 {
			t = c.Fallback[i]
		}
		if t.Source == sourceDefault && i == Reduce {
			t = Task{e.Tasks[Map].Time, defaultDeviation, guessError, sourceMaps} // better than the default
		}
		e.Tasks[i], e.TasksLeft[i] = p.Correct(t), p.TasksLeft
		e.Work[i] = p.Work(e.Tasks[i].Time)
	}
	return e
}
