package overlap

// srpt simulates SRPT at each station. One list has the jobs with map work, by map work left.
// Another has the jobs with shuffle work ready, by all shuffle work left. In both the next job
// to be served is last. A job in both lists has one record. An event takes O(n) for n jobs present.
type srpt struct {
	clock
	pool  []srptJob
	free  []int32
	toMap []ranked
	ready []ranked
	// passing is set if the last step ended because the head of ready caught up with the job
	// being mapped. Rounding must not put it behind again.
	passing bool
}

type srptJob struct {
	x, a, ratio float64 // as in job
	born, size  float64 // as in job
	ready       bool    // in the list ready
}

// ranked is a job in a list.
type ranked struct {
	left float64
	job  int32
}

// insert puts r before all jobs with as much left or less, which are served first.
func insert(list []ranked, r ranked) []ranked {
	list = append(list, r)
	i := len(list) - 1
	for ; i > 0 && list[i-1].left <= r.left; i-- {
		list[i] = list[i-1]
	}
	list[i] = r
	return list
}

func (e *srpt) arrive(a arrival) {
	for e.now < a.at {
		e.step(a.at)
	}
	at := int32(len(e.pool))
	if n := len(e.free); n > 0 {
		at, e.free = e.free[n-1], e.free[:n-1]
	} else {
		e.pool = append(e.pool, srptJob{})
	}
	e.pool[at] = srptJob{x: a.x, ratio: a.ratio, born: a.at, size: a.x * max(1, a.ratio)}
	e.toMap = insert(e.toMap, ranked{a.x, at})
}

func (e *srpt) finish() {
	for len(e.toMap)+len(e.ready) > 0 {
		e.step(forever)
	}
}

// step advances to the next event, or to that time if it is earlier.
func (e *srpt) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	if len(e.toMap)+len(e.ready) == 0 {
		e.now = to
		return
	}
	s := e.choose()
	ev := event{wait: to - e.now}
	if s.mapped != nil {
		ev = ev.mapping(s.mapped.x)
	}
	if s.drained != nil {
		ev = ev.draining(s.drained.a, s.shrinks)
		ev = ev.passing(e.meets(s))
	}
	e.pass(ev, to)
	e.passing = ev.passed
	s.advance(ev.wait)
	e.settle(s, ev)
}

// srptServed is the served jobs of a step; nil for none.
type srptServed struct {
	mapped  *srptJob // at rate 1
	grows   float64  // growth rate of its ready work, unless it is drained too
	drained *srptJob // has ready work that is shuffled
	shrinks float64  // rate at which this ready work falls, net of inflow
}

// choose selects the last job of each list.
func (e *srpt) choose() srptServed {
	s := srptServed{shrinks: 1}
	if n := len(e.toMap); n > 0 {
		e.mapping = 1
		m := &e.pool[e.toMap[n-1].job]
		s.mapped, s.grows = m, m.ratio
		if !m.ready && !e.joins(m) { // its map output is shuffled at once
			e.shuffling = m.ratio
			s.grows, s.shrinks = 0, 1-m.ratio
		}
	}
	if n := len(e.ready); n > 0 {
		e.shuffling = 1
		s.drained = &e.pool[e.ready[n-1].job]
		if s.drained == s.mapped {
			s.shrinks = 1 - s.grows
		}
	}
	return s
}

// joins reports whether the job being mapped becomes ready. It does if it cannot be shuffled as
// fast as it is mapped: another job comes first, or its ratio is above 1.
func (e *srpt) joins(m *srptJob) bool {
	left := m.ratio * m.x
	if n := len(e.ready); n > 0 && (e.passing || e.ready[n-1].left <= left) {
		left = max(left, e.ready[n-1].left)
	} else if m.ratio <= 1 {
		return false
	}
	m.ready = true
	e.ready = insert(e.ready, ranked{left, e.toMap[len(e.toMap)-1].job})
	return true
}

// meets returns the time until the job being drained catches up with the job being mapped.
func (e *srpt) meets(s srptServed) float64 {
	m := s.mapped
	if m == nil || m.ready || s.shrinks <= m.ratio {
		return forever
	}
	ahead := e.ready[len(e.ready)-1].left - m.ratio*m.x
	return ahead / (s.shrinks - m.ratio)
}

// advance does the work of a step.
func (s srptServed) advance(wait float64) {
	if s.drained != nil {
		s.drained.a = max(0, s.drained.a-s.shrinks*wait)
	}
	if s.mapped == nil {
		return
	}
	if s.mapped != s.drained {
		s.mapped.a += s.grows * wait
	}
	s.mapped.x = max(0, s.mapped.x-wait)
}

// settle restores the order of the lists after a step.
func (e *srpt) settle(s srptServed, ev event) {
	var mapAt, readyAt int32
	if l := s.drained; l != nil {
		n := len(e.ready) - 1
		readyAt = e.ready[n].job
		if ev.drained {
			l.a, l.ready = 0, false
			e.ready = e.ready[:n]
		} else {
			e.ready[n].left = l.a + l.ratio*l.x
		}
	}
	if m := s.mapped; m != nil {
		n := len(e.toMap) - 1
		mapAt = e.toMap[n].job
		e.toMap[n].left = m.x
		if ev.mapped || m.x == 0 {
			m.x = 0
			e.toMap = e.toMap[:n]
			if !m.ready && m.a == 0 {
				e.leave(m, mapAt)
			}
		}
	}
	if ev.drained && s.drained != s.mapped && s.drained.x == 0 {
		e.leave(s.drained, readyAt)
	}
}

func (e *srpt) leave(j *srptJob, at int32) {
	e.count(j.size, e.now-j.born)
	e.free = append(e.free, at)
}
