package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// beginMaps begins with the job that gets slots first.
func (p *Prediction) beginMaps() {
	for phase := range p.differ {
		work, squares := 0.0, 0.0
		for i := range p.f {
			w := p.f[i].Work[phase]
			work, squares = work+w, squares+square(w*p.f[i].Tasks[phase].Error)
		}
		p.differ[phase] = math.Hypot(sharesDiffer, math.Sqrt(squares)/max(work, 1e-9))
	}
	p.all()
	slices.SortFunc(p.order, func(a, b int) int { // faster than a stable one
		return cmp.Or(cmp.Compare(p.jobs[a].Rank[Map], p.jobs[b].Rank[Map]), cmp.Compare(a, b))
	})
}

// predictMaps sets the end of a job's maps.
func (p *Prediction) predictMaps(i int) {
	c, j, e := p.c, &p.jobs[i], &p.f[i]
	switch {
	case !j.Active:
	case e.TasksLeft[Map] == 0:
		e.MapsEnd = c.Now
	case c.Slots[Map] > 0:
		p.work += e.Work[Map]
		end, whole := c.Now+Duration(p.work/float64(c.Slots[Map])), false
		if j.MapsEnd > 0 {
			end, whole = max(c.Now, j.MapsEnd), j.WholeTasks
		}
		e.maps = p.mapSpan(j, e, end, whole).orLate(j.Phases[Map].overdue(e.Tasks[Map])).shrunk(farFuture)
		e.MapsEnd = c.Now + Duration(e.maps.mean)
	}
}

// mapSpan predicts how long the maps take. end comes from the plan, or from the work before this job. It determines how
// many slots the phase uses. whole means that end already considers that tasks are not divisible.
func (p *Prediction) mapSpan(j *Job, e *Estimate, end time.Duration, whole bool) moments {
	c, maps, t, left := p.c, &j.Phases[Map], e.Tasks[Map], e.TasksLeft[Map]
	if left <= maps.Running {
		return maps.lastEnd(t)
	}
	slots := min(c.Slots[Map], left)
	alone, took := e.Work[Map]/float64(slots), (end - c.Now).Seconds()
	var m moments
	if maps.Running == 0 && left == slots && took-alone <= rounding {
		m = t.mixed(func(t *Task) moments { return t.longest(slots) })
	} else {
		m = p.waves(e, Map, alone, max(took, alone), whole)
	}
	if j.Workers < slots {
		m.mean += c.Overheads.WarmUp.Seconds() // more workers must start
	}
	return m
}

// waves predicts how long tasks take that run one after the other in some slots. They would take alone if no other job
// had slots, and took with those.
func (p *Prediction) waves(e *Estimate, phase int, alone, took float64, whole bool) moments {
	c, t, work := p.c, e.Tasks[phase], e.Work[phase]
	used := min(c.Slots[phase], e.TasksLeft[phase], max(1, int(work/max(took, 1e-9)+rounding)))
	own := certain(alone)
	own.variance = square(t.Time.Seconds()*t.Deviation) * float64(e.TasksLeft[phase]) / square(float64(used))
	last := t.lastTasks(used)
	if whole {
		last.mean = 0
	}
	return own.plus(last).times(t.Error).plus(spread(took-alone, p.differ[phase])).plus(c.later(phase, work, took))
}

// reduceSpan predicts how long the reduces take from the end of the shuffle. They use slots.
func (p *Prediction) reduceSpan(j *Job, e *Estimate) moments {
	c, reduces, t := p.c, &j.Phases[Reduce], e.Tasks[Reduce]
	from := (e.ShuffleEnd - c.Now).Seconds()
	var m moments // from now
	if reduces.Running > 0 {
		m = reduces.lastEnd(t)
	}
	if waiting := max(0, e.TasksLeft[Reduce]-reduces.Running); waiting > 0 {
		var others moments
		each := t.Time.Seconds()
		if j.Workers < waiting {
			each += c.Overheads.WarmUp.Seconds() // more workers must start
		}
		if waiting <= p.slots.count() {
			begin, variance := p.slots.begin(waiting, from, each)
			others = certain(begin).plus(t.mixed(func(t *Task) moments {
				t.Deviation = math.Sqrt(square(t.Deviation) + variance/square(each))
				return t.longest(waiting)
			})).plus(spread(begin-from, p.differ[Reduce])).minus(begin - from)
		} else {
			end, used := p.slots.fill(float64(waiting)*each, from)
			alone := float64(waiting) * each / float64(used)
			others = certain(from).plus(p.waves(e, Reduce, alone, max(alone, end-from), false))
		}
		if others.mean > m.mean {
			m = others
		}
	}
	m.mean = max(m.mean, from)
	return m.minus(from)
}

// later is by how much jobs of the future delay a phase with work left that would take so many seconds: until it ends
// they get a part of the slots, except for those that come when it is almost over.
func (c *Cluster) later(phase int, work, seconds float64) moments {
	if seconds <= 0 {
		return moments{}
	}
	come := seconds * seconds / (seconds + c.Load.Life.Seconds())
	m := c.Load.during(c.Now, come, phase, work, c.Later)
	if m.mean == 0 {
		return m
	}
	relative := min(math.Sqrt(m.variance)/m.mean, maxLaterDiffer)
	load := min(maxLoad, m.mean/seconds/float64(max(1, c.Slots[phase])))
	return spread(seconds*load/(1-load), relative)
}

func square(x float64) float64 { return x * x }

// rounding is more than sums lose when they become whole nanoseconds, in seconds or slots. Without it,
// a nanosecond would decide whether a phase uses a slot more.
const rounding = 1e-6

// predictShuffles sets when all map output is at its homes. Jobs that are not in the plan share
// the bandwidth equally, after the jobs of the plan.
func (p *Prediction) predictShuffles() {
	c, jobs, f := p.c, p.jobs, p.f
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

// beginReduces begins with the job with the first shuffle that ends: jobs get reduce slots in this order.
func (p *Prediction) beginReduces() {
	f := p.f
	for i := range f {
		if f[i].ShuffleEnd != Never {
			p.order = append(p.order, i)
		}
	}
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(f[a].ShuffleEnd, f[b].ShuffleEnd), cmp.Compare(p.jobs[a].Rank[Reduce], p.jobs[b].Rank[Reduce]), cmp.Compare(a, b))
	})
	p.slots = newSlotTimes(p.c.Slots[Reduce], Reduce, p.jobs, f)
}

// predictReduces sets the end of a job.
func (p *Prediction) predictReduces(i int) {
	c, j, e := p.c, &p.jobs[i], &p.f[i]
	switch {
	case j.Closing:
		e.End = c.Now + Rest(c.Overheads.Close, c.Now-j.ClosingSince)
		return
	case e.TasksLeft[Reduce] > 0 && c.Slots[Reduce] == 0:
		return
	case e.TasksLeft[Reduce] > 0:
		e.reduces = p.reduceSpan(j, e).orLate(j.Phases[Reduce].overdue(e.Tasks[Reduce]))
	}
	e.End = e.ShuffleEnd + Duration(e.reduces.mean) + c.Overheads.Close
}

// beginUpcoming begins with the jobs that have not begun.
func (p *Prediction) beginUpcoming() {
	p.work = 0
	for i := range p.f {
		p.work += p.f[i].Work[Map]
		if p.jobs[i].Upcoming != nil && p.c.Slots[Map] > 0 {
			p.order = append(p.order, i)
		}
	}
}

// predictUpcoming sets the end of a job that has not begun. It begins after the jobs from which
// it reads output, and after the maps of the jobs before it.
func (p *Prediction) predictUpcoming(i int) {
	c, upcoming, e := p.c, p.jobs[i].Upcoming, &p.f[i]
	at := c.Now + Duration(p.work/float64(c.Slots[Map]))
	for _, n := range upcoming.After {
		if before := p.f.Of(n); before != nil {
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
	p.work += e.Work[Map]
	if e.End = at; at != Never {
		e.End += c.Overheads.Close
	}
}
