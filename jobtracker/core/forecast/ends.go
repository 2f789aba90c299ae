package forecast

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is what ends depend on besides the jobs. Times are on the caller's clock.
type Cluster struct {
	Now   time.Duration
	Slots [2]int  // by phase
	Usual [2]Task // of which nothing is known, by phase: see Mean

	Bandwidth Bandwidth
	Overheads Overheads
}

// Job is what is known of a job that has not ended.
type Job struct {
	N       int // its number
	Phases  [2]Phase
	Workers int // processes started for it

	// Its tasks have slots or wait for them: it has begun, does not stop, and is neither
	// suspended nor waiting for what trackers have of it.
	Goes bool

	Rank    [2]int        // its place in the order in which phases get slots, by phase
	MapsEnd time.Duration // when its maps end, by the plan in force; 0: that does not say so
	Whole   bool          // that plan has counted whole tasks

	Shuffle Transfer

	Closing      bool // all its tasks have ended
	ClosingSince time.Duration

	Coming *Coming // nil if it has begun, or nothing is known of when it will
}

// Transfer is what is left of a job's shuffle.
type Transfer struct {
	Left  float64 // bytes; 0: it has ended, or the job has none
	Homes int     // trackers that fetch it
	Turn  int     // its place in the plan in force, from 1; 0: that does not name it
}

// Coming is a job that has not begun and goes by the last one of its name.
type Coming struct {
	Tasks [2]int // by phase
	After []int  // numbers of the jobs whose output it reads
}

// Estimate is what is predicted of a job, if the plans in force go on as they see it,
// no job comes and nothing is lost. An end is Never if it cannot be predicted.
type Estimate struct {
	N     int        // the job's number
	Tasks [2]Task    // by phase
	Left  [2]int     // tasks, likewise
	Work  [2]float64 // slot-seconds left, likewise

	MapsEnd, ShuffleEnd, End time.Duration
}

// Forecast is the estimates of all jobs, by number.
type Forecast []Estimate

// Of is the estimate of the job with a number, nil if there is none.
func (f Forecast) Of(n int) *Estimate {
	i, ok := slices.BinarySearchFunc(f, n, func(e Estimate, n int) int { return cmp.Compare(e.N, n) })
	if !ok {
		return nil
	}
	return &f[i]
}

// Predict predicts the ends of jobs, which are sorted by number.
//
// A phase ends when its plan says, and after what a fluid plan does not see: its last
// tasks do not end together. Homes gather while maps run, so that the shuffle ends with
// the maps or after them. Reduces follow the shuffle, in the slots that other jobs leave
// them.
func Predict(c *Cluster, jobs []Job) Forecast {
	f := make(Forecast, len(jobs))
	for i := range jobs {
		f[i] = c.estimate(&jobs[i])
	}
	c.endMaps(jobs, f)
	c.endShuffles(jobs, f)
	c.endReduces(jobs, f)
	c.endComing(jobs, f)
	return f
}

// estimate is what a job has left, without its ends.
func (c *Cluster) estimate(j *Job) Estimate {
	e := Estimate{N: j.N, MapsEnd: Never, ShuffleEnd: Never, End: Never}
	for i := range j.Phases {
		p := &j.Phases[i]
		t := p.Task(c.Overheads.WarmUp)
		if t.Time == 0 {
			t = c.Usual[i]
		}
		if t.Source == sourceDefault && i == Reduce {
			t = Task{e.Tasks[Map].Time, usualDeviation, sourceMaps} // better than any constant
		}
		e.Tasks[i], e.Left[i] = p.Correct(t), p.Left
		e.Work[i] = p.Work(e.Tasks[i].Time)
	}
	return e
}

// inOrder is the places of jobs in the order in which a phase gets slots.
func inOrder(jobs []Job, phase int) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Rank[phase], jobs[b].Rank[phase]) })
	return order
}

// endMaps sets when maps end.
func (c *Cluster) endMaps(jobs []Job, f Forecast) {
	ahead := 0.0 // work of the jobs that come first
	for _, i := range inOrder(jobs, Map) {
		switch j, e := &jobs[i], &f[i]; {
		case !j.Goes:
		case e.Left[Map] == 0:
			e.MapsEnd = c.Now
		case c.Slots[Map] > 0:
			ahead += e.Work[Map]
			end, whole := c.Now+After(ahead/float64(c.Slots[Map])), false
			if j.MapsEnd > 0 {
				end, whole = max(c.Now, j.MapsEnd), j.Whole
			}
			e.MapsEnd = c.phaseEnd(j, e, Map, c.Now, end, whole)
		}
	}
}

// phaseEnd is when a phase of a job ends that begins at from, and gets through at end by
// a plan, or with what comes before it in line. It has as many slots then as it has work
// for in that time. A plan that has counted whole tasks knows that the last ones do not
// end together.
func (c *Cluster) phaseEnd(j *Job, e *Estimate, phase int, from, end time.Duration, whole bool) time.Duration {
	p, t, left := &j.Phases[phase], e.Tasks[phase], e.Left[phase]
	if left <= p.Running {
		return max(from, c.Now+p.last(t))
	}
	side := min(c.Slots[phase], left)
	if j.Workers < side {
		end, from = end+c.Overheads.WarmUp, from+c.Overheads.WarmUp // others have to be started
	}
	soonest := from + After(e.Work[phase]/float64(side))
	if p.Running == 0 && left == side && end <= soonest {
		return from + allAtOnce(t, side)
	}
	end = max(end, soonest)
	if took := end - from; took > 0 {
		side = min(side, max(1, int(e.Work[phase]/took.Seconds())))
	}
	if whole {
		return end
	}
	return end + lastTasks(t, side)
}

// endShuffles sets when all map output is at its homes. Jobs that the plan in force does
// not name are served alike, after those that it does.
func (c *Cluster) endShuffles(jobs []Job, f Forecast) {
	var shuffles []int // that have something left
	for i := range jobs {
		if f[i].ShuffleEnd = f[i].MapsEnd; f[i].MapsEnd != Never && jobs[i].Shuffle.Left > 0 {
			shuffles = append(shuffles, i)
		}
	}
	rate, homes := c.Bandwidth.Rate(), c.Bandwidth.Homes
	if rate == 0 {
		return
	}
	slices.SortStableFunc(shuffles, func(a, b int) int {
		x, y := &jobs[a].Shuffle, &jobs[b].Shuffle
		return cmp.Or(cmp.Compare(uint(x.Turn-1), uint(y.Turn-1)), cmp.Compare(x.Left, y.Left)) // 0 is last
	})
	done := 0.0 // bytes until a shuffle is through
	for k, i := range shuffles {
		s, e := &jobs[i].Shuffle, &f[i]
		done += s.Left
		queue := done
		if s.Turn == 0 {
			queue += s.Left * float64(len(shuffles)-1-k) // what the larger ones have by then
		}
		// Its own homes fetch no faster than they can, and what the last maps make
		// is fetched after them.
		own := rate * float64(min(homes, max(1, s.Homes))) / float64(homes)
		last := s.Left / float64(max(1, e.Left[Map])) * float64(min(1, e.Left[Map]))
		e.ShuffleEnd = max(e.MapsEnd+After(last/own), c.Now+After(max(queue/rate, s.Left/own)))
	}
}

// endReduces sets when jobs end, their reduces taking slots as they get ready.
func (c *Cluster) endReduces(jobs []Job, f Forecast) {
	order := slices.DeleteFunc(inOrder(jobs, Reduce), func(i int) bool { return f[i].ShuffleEnd == Never })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f[a].ShuffleEnd, f[b].ShuffleEnd) })
	slots := c.Slots[Reduce]
	through := 0.0 // seconds until the slots are through with the jobs so far
	for _, i := range order {
		j, e := &jobs[i], &f[i]
		end := e.ShuffleEnd
		switch {
		case e.Left[Reduce] == 0:
		case slots == 0:
			continue
		default:
			through = max(through, (e.ShuffleEnd-c.Now).Seconds()) + e.Work[Reduce]/float64(slots)
			end = c.phaseEnd(j, e, Reduce, end, max(end, c.Now+After(through)), false)
		}
		e.End = end + c.Overheads.Close
		if j.Closing {
			e.End = c.Now + Rest(c.Overheads.Close, c.Now-j.ClosingSince)
		}
	}
}

// endComing sets the ends of jobs that have not begun, by the last one of their name: they
// come when those end whose output they read, and after the others.
func (c *Cluster) endComing(jobs []Job, f Forecast) {
	if c.Slots[Map] == 0 {
		return
	}
	ahead := 0.0
	for i := range f {
		ahead += f[i].Work[Map]
	}
	for i := range jobs {
		coming, e := jobs[i].Coming, &f[i]
		if coming == nil {
			continue
		}
		at := c.Now + After(ahead/float64(c.Slots[Map]))
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
			e.Left[phase], e.Work[phase] = tasks, Times(tasks, each)
			at = min(at+After(Times(waves, each)), c.Now+After(absurd))
		}
		ahead += e.Work[Map]
		if e.End = at; at != Never {
			e.End += c.Overheads.Close
		}
	}
}
