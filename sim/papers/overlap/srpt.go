package overlap

// srpt simulates SRPT at each station by itself. One list has the jobs with map work,
// by what is left of it; another the jobs with shuffle work ready, by what is left to
// shuffle, ready or not. In both the next job to be served stands last. A job in both
// lists has one record, which the lists point to. O(n) for n jobs present.
type srpt struct {
	clock
	pool  []srptJob
	free  []int32
	toMap []ranked
	ready []ranked
	// passing says that the last step ended because the head of ready came up with the
	// job being mapped: rounding must not put it behind again.
	passing bool
}

type srptJob struct {
	x, a, ratio float64 // as in maxJob
	born, size  float64
	ready       bool // is in that list
}

// ranked is a job in a list.
type ranked struct {
	left float64
	job  int32
}

// insert puts r in front of those with less left, and behind those with as much.
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

// step goes to the next event, or to that time if it is earlier.
func (e *srpt) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	if len(e.toMap)+len(e.ready) == 0 {
		e.now = to
		return
	}
	var m, l *srptJob
	rest, net := 1.0, 0.0
	if n := len(e.toMap); n > 0 {
		e.mapping = 1
		m = &e.pool[e.toMap[n-1].job]
		if net = m.ratio; !m.ready && !e.joins(m) {
			e.shuffling = m.ratio // what is mapped is shuffled at once
			rest, net = 1-m.ratio, 0
		}
	}
	e.passing = false
	if n := len(e.ready); n > 0 {
		if l = &e.pool[e.ready[n-1].job]; l == m {
			net--
		}
		e.shuffling = 1
	}
	e.serve(m, l, net, rest, to)
}

// joins says whether the job being mapped cannot be shuffled as fast as it is mapped,
// because another one comes first or because its ratio is above 1; it is ready then.
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

// serve lets time pass: m is mapped at rate 1 and what it has ready grows at rate net; l,
// if it is another, is shuffled at the rate that is left.
func (e *srpt) serve(m, l *srptJob, net, rest, to float64) {
	wait := to - e.now
	mapped, drained, passed := false, false, false
	if m != nil && m.x <= wait {
		wait, mapped = m.x, true
	}
	drop := rest
	if l == m {
		drop = -net
	}
	if l != nil && drop > 0 && l.a <= drop*wait {
		t := l.a / drop
		mapped = mapped && t >= wait
		wait, drained = t, true
	}
	if l != nil && m != nil && !m.ready && rest > m.ratio {
		if t := (e.ready[len(e.ready)-1].left - m.ratio*m.x) / (rest - m.ratio); t < wait {
			wait, mapped, drained, passed = max(0, t), false, false, true
		}
	}
	e.now += wait
	if !mapped && !drained && !passed {
		e.now = to
	}
	e.passing = passed
	if m != nil {
		m.a = max(0, m.a+net*wait)
		m.x = max(0, m.x-wait)
	}
	if l != nil && l != m {
		l.a = max(0, l.a-rest*wait)
	}
	e.settle(m, l, mapped, drained)
}

// settle puts the lists in order after a step.
func (e *srpt) settle(m, l *srptJob, mapped, drained bool) {
	var mapAt, readyAt int32
	if l != nil {
		n := len(e.ready) - 1
		readyAt = e.ready[n].job
		if drained {
			l.a, l.ready = 0, false
			e.ready = e.ready[:n]
		} else {
			e.ready[n].left = l.a + l.ratio*l.x
		}
	}
	if m != nil {
		n := len(e.toMap) - 1
		mapAt = e.toMap[n].job
		e.toMap[n].left = m.x
		if mapped || m.x == 0 {
			m.x = 0
			e.toMap = e.toMap[:n]
			if !m.ready && m.a == 0 {
				e.leave(m, mapAt)
			}
		}
	}
	if drained && l != m && l.x == 0 {
		e.leave(l, readyAt)
	}
}

func (e *srpt) leave(j *srptJob, at int32) {
	e.done(j.size, e.now-j.born)
	e.free = append(e.free, at)
}
