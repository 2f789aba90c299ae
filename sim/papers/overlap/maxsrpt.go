package overlap

import "slices"

// maxSRPT simulates MaxSRPT. The list is kept by precedence, the head last. Only a
// job that is served changes its key, and downwards; nobody overtakes the head, whose
// key falls at rate 1. So order is mended when something happens, and not in between.
// O(n) for n jobs present, by going through the list; few are ahead of a small job.
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

// step goes to the next event, or to that time if it is earlier.
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
	// The later in the list first: the other's place does not change then.
	e.settle(max(s.mapped, s.drained))
	if s.mapped != s.drained {
		e.settle(min(s.mapped, s.drained))
	}
}

// maxServed is who is served in a step: places in the list, -1 for none.
type maxServed struct {
	mapped  int     // at rate 1
	grows   float64 // how fast its ready work does, unless it is drained too
	drained int     // of what it has ready
	shrinks float64 // how fast that does, inflow subtracted
}

// choose says who is served (section 4.1): the head at both stations, and the next ones
// with what it leaves (section 5).
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
	default: // what the head maps is shuffled at once, as far as the shuffle can
		s.grows = max(0, h.ratio-1)
		s.shrinks = 1 - min(1, h.ratio)
		if s.drained = e.nextReady(s.shrinks); s.drained < 0 {
			e.shuffling = min(1, h.ratio)
		}
	}
	return s
}

// nextReady is the first job behind the head with work ready, -1 if there is none or
// nothing of the shuffle is left for it.
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
	j.x = max(0, j.x-ev.wait) // 0 if it is mapped, as the wait is no shorter then
}

// settle puts a job that has been served in its place, or out if nothing is left.
func (e *maxSRPT) settle(at int) {
	if at < 0 {
		return
	}
	j := &e.jobs[at]
	e.ready += j.counts()
	if j.x == 0 && j.a == 0 {
		e.done(j.size, e.now-j.born)
		e.jobs = slices.Delete(e.jobs, at, at+1)
		return
	}
	j.key = max(j.x, j.a+j.ratio*j.x)
	mend(e.jobs, at)
}
