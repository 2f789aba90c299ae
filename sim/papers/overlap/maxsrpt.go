package overlap

import "slices"

// maxSRPT simulates MaxSRPT. The list is kept by precedence, the head last. Only a
// job that is served changes its key, and downwards; nobody overtakes the head, whose
// key falls at rate 1. So order is mended when something happens, and not in between.
// O(n) for n jobs present, by going through the list; few are ahead of a small job.
type maxSRPT struct {
	clock
	jobs  []maxJob
	ready int // jobs with shuffle work ready
}

type maxJob struct {
	key   float64 // max(x(t), y(t))
	x     float64 // map work left
	a     float64 // shuffle work ready; y(t) = a + ratio·x
	ratio float64
	born  float64
	size  float64 // max(x, y)
	ready bool    // is counted as such
}

func (j *maxJob) before(k *maxJob) bool {
	return j.key < k.key || j.key == k.key && j.born < k.born
}

func (e *maxSRPT) arrive(a arrival) {
	for e.now < a.at {
		e.step(a.at)
	}
	size := a.x * max(1, a.ratio)
	j := maxJob{key: size, x: a.x, ratio: a.ratio, born: a.at, size: size}
	e.jobs = append(e.jobs, j)
	i := len(e.jobs) - 1
	for ; i > 0 && e.jobs[i-1].before(&j); i-- {
		e.jobs[i] = e.jobs[i-1]
	}
	e.jobs[i] = j
}

func (e *maxSRPT) finish() {
	for len(e.jobs) > 0 {
		e.step(forever)
	}
}

// step goes to the next event, or to that time if it is earlier.
func (e *maxSRPT) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	head := len(e.jobs) - 1
	if head < 0 {
		e.now = to
		return
	}
	m := head // is mapped
	for m >= 0 && e.jobs[m].x == 0 {
		m--
	}
	d, rest := head, 1.0 // drains what it has ready
	net := 0.0           // how fast m's ready work grows
	switch h := &e.jobs[head]; {
	case m != head:
		if m >= 0 {
			net = e.jobs[m].ratio
		}
	case h.a > 0:
		net = h.ratio - 1
	default: // what the head maps is shuffled at once, and the next one has the rest
		net = max(0, h.ratio-1)
		e.shuffling = min(1, h.ratio)
		d, rest = -1, 1-e.shuffling
		if e.ready > 0 && rest > 0 {
			for d = head - 1; e.jobs[d].a == 0; {
				d--
			}
		}
	}
	e.serve(m, d, net, rest, to)
}

// serve lets time pass with those rates, until m is mapped or d drained.
func (e *maxSRPT) serve(m, d int, net, rest, to float64) {
	wait := to - e.now
	mapped, drained := false, false
	if m >= 0 {
		e.mapping = 1
		if x := e.jobs[m].x; x <= wait {
			wait, mapped = x, true
		}
	}
	drop := rest // how fast d's ready work shrinks
	if d >= 0 {
		e.shuffling = 1
		if d == m {
			drop = -net
		}
		if a := e.jobs[d].a; drop > 0 && a <= drop*wait {
			t := a / drop
			mapped = mapped && t >= wait
			wait, drained = t, true
		}
	}
	e.now += wait
	if !mapped && !drained {
		e.now = to
	}
	if d >= 0 && d != m {
		j := &e.jobs[d]
		j.a = max(0, j.a-drop*wait)
		if drained {
			j.a = 0
		}
	}
	if m >= 0 {
		j := &e.jobs[m]
		j.a = max(0, j.a+net*wait)
		if d == m && drained {
			j.a = 0
		}
		j.x = max(0, j.x-wait)
		if mapped {
			j.x = 0
		}
	}
	// The later in the list first: the other's place does not change then.
	e.settle(max(m, d))
	if m != d {
		e.settle(min(m, d))
	}
}

// settle puts a job that has been served in its place, or out if nothing is left.
func (e *maxSRPT) settle(at int) {
	if at < 0 {
		return
	}
	j := &e.jobs[at]
	if ready := j.a > 0; ready != j.ready {
		j.ready = ready
		if ready {
			e.ready++
		} else {
			e.ready--
		}
	}
	if j.x == 0 && j.a == 0 {
		e.done(j.size, e.now-j.born)
		e.jobs = slices.Delete(e.jobs, at, at+1)
		return
	}
	j.key = max(j.x, j.a+j.ratio*j.x)
	for last := len(e.jobs) - 1; at < last && e.jobs[at].before(&e.jobs[at+1]); at++ {
		e.jobs[at], e.jobs[at+1] = e.jobs[at+1], e.jobs[at]
	}
}
