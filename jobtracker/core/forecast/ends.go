package forecast

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is the state of the cluster for a forecast. Times are on the caller's clock.
type Cluster struct {
	Now      time.Duration
	Slots    [2]int  // by phase
	Fallback [2]Task // for jobs without measured times, by phase; see Mean

	Bandwidth Bandwidth
	Overheads Overheads
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
	c      *Cluster
	jobs   []Job
	f      Forecast
	stages []func(c *Cluster, jobs []Job, f Forecast) // those that are left
}

// NewPrediction begins a prediction.
func NewPrediction(c *Cluster, jobs []Job) *Prediction {
	return &Prediction{c: c, jobs: jobs, f: make(Forecast, 0, len(jobs)), stages: []func(c *Cluster, jobs []Job, f Forecast){
		(*Cluster).predictMaps, (*Cluster).predictShuffles, (*Cluster).predictReduces, (*Cluster).predictUpcoming, (*Cluster).predictRanges,
	}}
}

// stageParts is how many jobs a stage handles in the time of an entry.
const stageParts = 8

// Advance handles entries, at least one. After the estimates of all jobs, a stage is a piece, which may
// exceed the budget if nothing else is done.
func (p *Prediction) Advance(budget int) (spent int, done bool) {
	for ; spent < budget && len(p.f) < len(p.jobs); spent++ {
		p.f = append(p.f, p.c.estimate(&p.jobs[len(p.f)]))
	}
	for cost := 1 + len(p.jobs)/stageParts; len(p.f) == len(p.jobs) && len(p.stages) > 0; spent += cost {
		if spent > 0 && spent+cost > budget {
			return spent, false
		}
		p.stages[0](p.c, p.jobs, p.f)
		p.stages = p.stages[1:]
	}
	return spent, len(p.stages) == 0
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
			t = Task{e.Tasks[Map].Time, defaultDeviation, sourceMaps} // better than the default
		}
		e.Tasks[i], e.TasksLeft[i] = p.Correct(t), p.TasksLeft
		e.Work[i] = p.Work(e.Tasks[i].Time)
	}
	return e
}

// inOrder lists the indexes of jobs in the order in which they get slots for a phase.
func inOrder(jobs []Job, phase int) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { // faster than a stable one
		return cmp.Or(cmp.Compare(jobs[a].Rank[phase], jobs[b].Rank[phase]), cmp.Compare(a, b))
	})
	return order
}

// predictMaps sets the ends of maps.
func (c *Cluster) predictMaps(jobs []Job, f Forecast) {
	work := 0.0 // of the jobs so far
	for _, i := range inOrder(jobs, Map) {
		switch j, e := &jobs[i], &f[i]; {
		case !j.Active:
		case e.TasksLeft[Map] == 0:
			e.MapsEnd = c.Now
		case c.Slots[Map] > 0:
			work += e.Work[Map]
			end, whole := c.Now+Duration(work/float64(c.Slots[Map])), false
			if j.MapsEnd > 0 {
				end, whole = max(c.Now, j.MapsEnd), j.WholeTasks
			}
			e.MapsEnd = max(c.phaseEnd(j, e, Map, c.Now, end, whole), c.Now+j.Phases[Map].overdue(e.Tasks[Map]))
		}
	}
}

// phaseEnd predicts the end of a phase that begins at from. end comes from the plan, or from the
// work before this job. It determines how many slots the phase uses. whole means that end
// already considers that tasks are not divisible.
func (c *Cluster) phaseEnd(j *Job, e *Estimate, phase int, from, end time.Duration, whole bool) time.Duration {
	p, t, left := &j.Phases[phase], e.Tasks[phase], e.TasksLeft[phase]
	if left <= p.Running {
		return max(from, c.Now+p.lastEnd(t))
	}
	slots := min(c.Slots[phase], left)
	if j.Workers < slots {
		end, from = end+c.Overheads.WarmUp, from+c.Overheads.WarmUp // more workers must start
	}
	earliest := from + Duration(e.Work[phase]/float64(slots))
	if p.Running == 0 && left == slots && end <= earliest {
		return from + concurrentTime(t, slots)
	}
	end = max(end, earliest)
	if took := end - from; took > 0 {
		slots = min(slots, max(1, int(e.Work[phase]/took.Seconds())))
	}
	if whole {
		return end
	}
	return end + lastTasksDelay(t, slots)
}

// predictShuffles sets when all map output is at its homes. Jobs that are not in the plan share
// the bandwidth equally, after the jobs of the plan.
func (c *Cluster) predictShuffles(jobs []Job, f Forecast) {
	var shuffles []int // jobs with bytes left to fetch
	for i := range jobs {
		if f[i].ShuffleEnd = f[i].MapsEnd; f[i].MapsEnd != Never && jobs[i].Shuffle.BytesLeft > 0 {
			shuffles = append(shuffles, i)
		}
	}
	rate, homes := c.Bandwidth.Rate(), c.Bandwidth.Homes
	if rate == 0 {
		return
	}
	slices.SortFunc(shuffles, func(a, b int) int {
		x, y := &jobs[a].Shuffle, &jobs[b].Shuffle
		return cmp.Or(cmp.Compare(uint(x.Turn-1), uint(y.Turn-1)), cmp.Compare(x.BytesLeft, y.BytesLeft), cmp.Compare(a, b)) // 0 is last
	})
	total := 0.0 // bytes of the shuffles so far
	for k, i := range shuffles {
		s, e := &jobs[i].Shuffle, &f[i]
		total += s.BytesLeft
		fetched := total // bytes of all jobs when this shuffle ends
		if s.Turn == 0 {
			fetched += s.BytesLeft * float64(len(shuffles)-1-k) // the larger ones have fetched as much as this one
		}
		// The number of the job's homes limits its rate. They fetch the output of the last maps
		// after the maps.
		jobRate := rate * float64(min(homes, max(1, s.Homes))) / float64(homes)
		last := s.BytesLeft / float64(max(1, e.TasksLeft[Map])) * float64(min(1, e.TasksLeft[Map]))
		e.ShuffleEnd = max(e.MapsEnd+Duration(last/jobRate), c.Now+Duration(max(fetched/rate, s.BytesLeft/jobRate)))
	}
}

// predictReduces sets the ends of jobs. Jobs get reduce slots in the order of their shuffles' ends.
func (c *Cluster) predictReduces(jobs []Job, f Forecast) {
	order := make([]int, 0, len(jobs))
	for i := range f {
		if f[i].ShuffleEnd != Never {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(f[a].ShuffleEnd, f[b].ShuffleEnd), cmp.Compare(jobs[a].Rank[Reduce], jobs[b].Rank[Reduce]), cmp.Compare(a, b))
	})
	slots := c.Slots[Reduce]
	busy := 0.0 // seconds until the slots have done the work of the jobs so far
	for _, i := range order {
		j, e := &jobs[i], &f[i]
		end := e.ShuffleEnd
		switch {
		case e.TasksLeft[Reduce] == 0:
		case slots == 0:
			continue
		default:
			busy = max(busy, (e.ShuffleEnd-c.Now).Seconds()) + e.Work[Reduce]/float64(slots)
			end = c.phaseEnd(j, e, Reduce, end, max(end, c.Now+Duration(busy)), false)
			end = max(end, c.Now+j.Phases[Reduce].overdue(e.Tasks[Reduce]))
		}
		e.End = end + c.Overheads.Close
		if j.Closing {
			e.End = c.Now + Rest(c.Overheads.Close, c.Now-j.ClosingSince)
		}
	}
}

// predictUpcoming sets the ends of jobs that have not begun. They begin after the jobs from which
// they read output, and after the maps of the jobs before them.
func (c *Cluster) predictUpcoming(jobs []Job, f Forecast) {
	if c.Slots[Map] == 0 {
		return
	}
	work := 0.0 // map work of the jobs that come first
	for i := range f {
		work += f[i].Work[Map]
	}
	for i := range jobs {
		upcoming, e := jobs[i].Upcoming, &f[i]
		if upcoming == nil {
			continue
		}
		at := c.Now + Duration(work/float64(c.Slots[Map]))
		for _, n := range upcoming.After {
			if before := f.Of(n); before != nil {
				at = max(at, before.End)
			}
		}
		for phase, tasks := range upcoming.Tasks {
			if at == Never || tasks == 0 {
				continue
			}
			if c.Slots[phase] == 0 {
				at = Never
				continue
			}
			waves, each := (tasks+c.Slots[phase]-1)/c.Slots[phase], e.Tasks[phase].Time
			e.TasksLeft[phase], e.Work[phase] = tasks, TotalSeconds(tasks, each)
			at = min(at+Duration(TotalSeconds(waves, each)), c.Now+Duration(farFuture))
		}
		work += e.Work[Map]
		if e.End = at; at != Never {
			e.End += c.Overheads.Close
		}
	}
}
