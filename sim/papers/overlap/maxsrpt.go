package overlap

import "slices"

// maxSRPT simulates MaxSRPT. The list is in order of precedence, the head last. Only the keys of
// served jobs change, and they fall. No job overtakes the head, because its key falls at rate
// 1. So the order is restored only at events. An event takes O(n) for n jobs present, by a scan of the list;
// few jobs are ahead of a small job.
type maxSRPT struct {
	clock
	jobs  []job // by max(x(t), y(t))
	ready int   // jobs with shuffle work ready
}

func (e *maxSRPT) arrive(a arrival) {
	for e.now < a.at {
		e.step(a.at)
	}
	size := a.x * max(1, a.ratio)
	e.jobs = place(e.jobs, job{key: size, x: a.x, ratio: a.ratio, born: a.at, size: size})
}

func (e *maxSRPT) finish() {
	for len(e.jobs) > 0 {
		e.step(forever)
	}
}

// step advances to the next event, or to that time if it is earlier.
func (e *maxSRPT) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	if len(e.jobs) == 0 {
		e.now = to
		return
	}
	s := e.choose()
	ev := event{wait: to - e.now}
	if s.mapped >= 0 {
		ev = ev.mapping(e.jobs[s.mapped].x)
	}
	if s.drained >= 0 {
		ev = ev.draining(e.jobs[s.drained].a, s.shrinks)
	}
	e.pass(ev, to)
	e.advance(s, ev)
	// The job later in the list comes first, so that the index of the other stays.
	e.settle(max(s.mapped, s.drained))
	if s.mapped != s.drained {
		e.settle(min(s.mapped, s.drained))
	}
}

// maxServed is the served jobs of a step: indexes in the list, -1 for none.
type maxServed struct {
	mapped  int     // at rate 1
	grows   float64 // growth rate of its ready work, unless it is drained too
	drained int     // has ready work that is shuffled
	shrinks float64 // rate at which this ready work falls, net of inflow
}

// choose selects the served jobs: the head at both stations (section 4.1), and other jobs for
// the capacity that it leaves (section 5).
func (e *maxSRPT) choose() maxServed {
	head := len(e.jobs) - 1
	s := maxServed{mapped: head, drained: head, shrinks: 1}
	for s.mapped >= 0 && e.jobs[s.mapped].x == 0 {
		s.mapped--
	}
	if s.mapped >= 0 {
		e.mapping = 1
	}
	e.shuffling = 1
	h := &e.jobs[head]
	switch {
	case s.mapped < 0:
	case s.mapped < head:
		s.grows = e.jobs[s.mapped].ratio
	case h.a > 0:
		s.shrinks = 1 - h.ratio
	default: // the head's map output is shuffled at once, as far as possible
		s.grows = max(0, h.ratio-1)
		s.shrinks = 1 - min(1, h.ratio)
		if s.drained = e.nextReady(s.shrinks); s.drained < 0 {
			e.shuffling = min(1, h.ratio)
		}
	}
	return s
}

// nextReady returns the first job behind the head with work ready; -1 if there is none or the
// shuffle has no capacity left.
func (e *maxSRPT) nextReady(rest float64) int {
	if e.ready == 0 || rest == 0 {
		return -1
	}
	at := len(e.jobs) - 2
	for e.jobs[at].a == 0 {
		at--
	}
	return at
}

// advance does the work of a step.
func (e *maxSRPT) advance(s maxServed, ev event) {
	if s.drained >= 0 {
		j := &e.jobs[s.drained]
		if j.a = max(0, j.a-s.shrinks*ev.wait); ev.drained {
			j.a = 0
		}
	}
	if s.mapped < 0 {
		return
	}
	j := &e.jobs[s.mapped]
	if s.mapped != s.drained {
		j.a += s.grows * ev.wait
	}
	j.x = max(0, j.x-ev.wait) // exactly 0 if the job is mapped: then the wait is at least j.x
}

// settle moves a served job to its place, or removes it if it is done.
func (e *maxSRPT) settle(at int) {
	if at < 0 {
		return
	}
	j := &e.jobs[at]
	e.ready += j.updateReady()
	if j.x == 0 && j.a == 0 {
		e.count(j.size, e.now-j.born)
		e.jobs = slices.Delete(e.jobs, at, at+1)
		return
	}
	j.key = max(j.x, j.a+j.ratio*j.x)
	moveUp(e.jobs, at)
}
