package forecast

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is the input of a forecast besides the jobs. Times are on the caller's clock.
type Cluster struct {
	Now      time.Duration
	Slots    [2]int  // by phase
	Fallback [2]Task // of which nothing is known, by phase: see Mean

	Bandwidth Bandwidth
	Overheads Overheads
}

// Job is the state of a job that has not ended.
type Job struct {
	N       int // its number
	Phases  [2]Phase
	Workers int // processes started for it

	// Active: its tasks have slots or wait for them. It has begun, does not stop, and is neither
	// suspended nor waiting for trackers to report its outputs.
	Active bool

	Rank       [2]int        // its place in the order in which phases get slots, by phase
	MapsEnd    time.Duration // when its maps end, by the plan in force; 0: that does not say so
	WholeTasks bool          // that plan has counted whole tasks

	Shuffle Transfer

	Closing      bool // all its tasks have ended
	ClosingSince time.Duration

	Upcoming *Upcoming // nil if it has begun, or nothing is known of when it will
}

// Transfer is the rest of a job's shuffle.
type Transfer struct {
	BytesLeft  float64 // bytes; 0: it has ended, or the job has none
	Homes int     // trackers that fetch it
	Turn  int     // its place in the plan in force, from 1; 0: that does not name it
}

// Upcoming is a job that has not begun and goes by the last one of its name.
type Upcoming struct {
	Tasks [2]int // by phase
	After []int  // numbers of the jobs whose output it reads
}

// Estimate is the forecast of a job. It assumes that the plans in force stay, no job is
// submitted and nothing is lost. An end is Never if it cannot be predicted.
type Estimate struct {
	N     int        // the job's number
	Tasks [2]Task    // by phase
	TasksLeft  [2]int     // tasks, likewise
	Work  [2]float64 // slot-seconds left, likewise

	MapsEnd, ShuffleEnd, End time.Duration
}

// Forecast is the estimates of all jobs, by number.
type Forecast []Estimate

// Of returns the estimate of the job with a number, or nil.
func (f Forecast) Of(n int) *Estimate {
	i, ok := slices.BinarySearchFunc(f, n, func(e Estimate, n int) int { return cmp.Compare(e.N, n) })
	if !ok {
		return nil
	}
	return &f[i]
}

// Predict predicts the ends of jobs, which are sorted by number.
//
// A phase ends when its plan says, plus a delay that a fluid plan ignores: its last tasks do
// not end together. Homes gather while maps run, so that the shuffle ends with the maps or
// after them. Reduces follow the shuffle, in slots that other jobs leave free.
func Predict(c *Cluster, jobs []Job) Forecast {
	f := make(Forecast, len(jobs))
	for i := range jobs {
		f[i] = c.estimate(&jobs[i])
	}
	c.predictMaps(jobs, f)
	c.predictShuffles(jobs, f)
	c.predictReduces(jobs, f)
	c.predictUpcoming(jobs, f)
	return f
}

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
			t = Task{e.Tasks[Map].Time, defaultDeviation, sourceMaps} // better than a constant
		}
		e.Tasks[i], e.TasksLeft[i] = p.Correct(t), p.TasksLeft
		e.Work[i] = p.Work(e.Tasks[i].Time)
	}
	return e
}

// inOrder lists the indexes of jobs in the order in which a phase gets slots.
func inOrder(jobs []Job, phase int) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Rank[phase], jobs[b].Rank[phase]) })
	return order
}

// endMaps sets when maps end.
func (c *Cluster) predictMaps(jobs []Job, f Forecast) {
	ahead := 0.0 // work of the jobs that come first
	for _, i := range inOrder(jobs, Map) {
		switch j, e := &jobs[i], &f[i]; {
		case !j.Active:
		case e.TasksLeft[Map] == 0:
			e.MapsEnd = c.Now
		case c.Slots[Map] > 0:
			ahead += e.Work[Map]
			end, whole := c.Now+Duration(ahead/float64(c.Slots[Map])), false
			if j.MapsEnd > 0 {
				end, whole = max(c.Now, j.MapsEnd), j.WholeTasks
			}
			e.MapsEnd = c.phaseEnd(j, e, Map, c.Now, end, whole)
		}
	}
}

// phaseEnd predicts the end of a phase that begins at from. A fluid plan, or the work before
// it in line, predicts end; the number of slots follows from this time and the work. If the
// plan counts whole tasks, it includes that the last ones do not end together.
func (c *Cluster) phaseEnd(j *Job, e *Estimate, phase int, from, end time.Duration, whole bool) time.Duration {
	p, t, left := &j.Phases[phase], e.Tasks[phase], e.TasksLeft[phase]
	if left <= p.Running {
		return max(from, c.Now+p.lastEnd(t))
	}
	side := min(c.Slots[phase], left)
	if j.Workers < side {
		end, from = end+c.Overheads.WarmUp, from+c.Overheads.WarmUp // more workers have to start
	}
	soonest := from + Duration(e.Work[phase]/float64(side))
	if p.Running == 0 && left == side && end <= soonest {
		return from + concurrentTime(t, side)
	}
	end = max(end, soonest)
	if took := end - from; took > 0 {
		side = min(side, max(1, int(e.Work[phase]/took.Seconds())))
	}
	if whole {
		return end
	}
	return end + lastTasksDelay(t, side)
}

// endShuffles sets when all map output is at its homes. Jobs that are not in the plan share
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
	slices.SortStableFunc(shuffles, func(a, b int) int {
		x, y := &jobs[a].Shuffle, &jobs[b].Shuffle
		return cmp.Or(cmp.Compare(uint(x.Turn-1), uint(y.Turn-1)), cmp.Compare(x.BytesLeft, y.BytesLeft)) // 0 is last
	})
	done := 0.0 // bytes fetched when a shuffle ends
	for k, i := range shuffles {
		s, e := &jobs[i].Shuffle, &f[i]
		done += s.BytesLeft
		queue := done
		if s.Turn == 0 {
			queue += s.BytesLeft * float64(len(shuffles)-1-k) // the larger ones have fetched as much by then
		}
		// The job's own homes limit its rate, and they fetch the last maps' output after the maps.
		own := rate * float64(min(homes, max(1, s.Homes))) / float64(homes)
		last := s.BytesLeft / float64(max(1, e.TasksLeft[Map])) * float64(min(1, e.TasksLeft[Map]))
		e.ShuffleEnd = max(e.MapsEnd+Duration(last/own), c.Now+Duration(max(queue/rate, s.BytesLeft/own)))
	}
}

// endReduces sets when jobs end. Reduces take slots in the order in which they become ready.
func (c *Cluster) predictReduces(jobs []Job, f Forecast) {
	order := slices.DeleteFunc(inOrder(jobs, Reduce), func(i int) bool { return f[i].ShuffleEnd == Never })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f[a].ShuffleEnd, f[b].ShuffleEnd) })
	slots := c.Slots[Reduce]
	through := 0.0 // seconds until the slots have done the work of the jobs so far
	for _, i := range order {
		j, e := &jobs[i], &f[i]
		end := e.ShuffleEnd
		switch {
		case e.TasksLeft[Reduce] == 0:
		case slots == 0:
			continue
		default:
			through = max(through, (e.ShuffleEnd-c.Now).Seconds()) + e.Work[Reduce]/float64(slots)
			end = c.phaseEnd(j, e, Reduce, end, max(end, c.Now+Duration(through)), false)
		}
		e.End = end + c.Overheads.Close
		if j.Closing {
			e.End = c.Now + Rest(c.Overheads.Close, c.Now-j.ClosingSince)
		}
	}
}

// endUpcoming sets the ends of jobs that have not begun, by the last one of their name: they
// come when those end whose output they read, and after the others.
func (c *Cluster) predictUpcoming(jobs []Job, f Forecast) {
	if c.Slots[Map] == 0 {
		return
	}
	ahead := 0.0
	for i := range f {
		ahead += f[i].Work[Map]
	}
	for i := range jobs {
		coming, e := jobs[i].Upcoming, &f[i]
		if coming == nil {
			continue
		}
		at := c.Now + Duration(ahead/float64(c.Slots[Map]))
		for _, n := range coming.After {
			if before := f.Of(n); before != nil {
				at = max(at, before.End)
			}
		}
		for phase, tasks := range coming.Tasks {
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
		ahead += e.Work[Map]
		if e.End = at; at != Never {
			e.End += c.Overheads.Close
		}
	}
}
