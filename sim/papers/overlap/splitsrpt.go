package overlap

import (
	"math"
	"slices"
)

// splitSRPT simulates SplitSRPT. In each list the next job to be served is last. Map-heavy jobs
// change lists when they are mapped: then they are drained before the others, the least first.
// Shuffle-heavy jobs are all in one list by y(t); its order is restored when a served job has
// moved up. O(n) for n jobs present.
type splitSRPT struct {
	clock
	strict   bool    // no lending
	mapHeavy []job   // with map work, by x(t)
	mapped   []job   // map-heavy ones without map work, by y(t)
	heavy    []job   // shuffle-heavy, by y(t)
	waiting  int     // jobs of mapHeavy with shuffle work ready
	ready    int     // jobs of heavy with shuffle work ready
	least    float64 // unbalance of the jobs present: the paper's β(t)
}

func newSplitSRPT(strict bool) *splitSRPT {
	return &splitSRPT{strict: strict, least: forever}
}

func (e *splitSRPT) arrive(a arrival) {
	for e.now < a.at {
		e.step(a.at)
	}
	j := job{key: a.x, x: a.x, ratio: a.ratio, born: a.at, size: a.x}
	if a.ratio <= 1 {
		j.unbalance = 1 / a.ratio
		e.mapHeavy = place(e.mapHeavy, j)
	} else {
		j.unbalance = a.ratio
		j.size *= a.ratio
		j.key = j.size
		e.heavy = place(e.heavy, j)
	}
	e.least = min(e.least, j.unbalance)
}

func (e *splitSRPT) finish() {
	for len(e.mapHeavy)+len(e.mapped)+len(e.heavy) > 0 {
		e.step(forever)
	}
}

// part is the progress of a class: one job is mapped, one is drained. Either may be missing,
// and both may be the same.
type part struct {
	m, d    *job
	mapRate float64
	inflow  float64 // map output that can be shuffled at once, if nothing is ready before it
	want    float64 // shuffle rate that the class can use
	net     float64 // growth rate of m's ready work
	drop    float64 // rate at which d's ready work falls
}

// step advances to the next event, or to that time if it is earlier.
func (e *splitSRPT) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	if len(e.mapHeavy)+len(e.mapped)+len(e.heavy) == 0 {
		e.now = to
		return
	}
	light := 1 / (1 + e.least) // the paper's μ1
	m1, m2 := len(e.mapHeavy)-1, len(e.heavy)-1
	for m2 >= 0 && e.heavy[m2].x == 0 {
		m2--
	}
	var p1, p2 part
	p1.mapRate, p2.mapRate = e.shareMap(m1 >= 0, m2 >= 0, light)
	e.choose1(&p1, m1)
	d2 := e.choose2(&p2, m2)
	var c1, c2 float64
	if e.strict {
		c1, c2 = min(p1.want, light), min(p2.want, 1-light)
	} else {
		c2 = min(p2.want, 1-min(p1.want, light))
		c1 = min(p1.want, 1-c2)
	}
	e.shuffling = c1 + c2
	p1.share(c1)
	p2.share(c2)
	e.pass(&p1, &p2, to)
	e.settle1(&p1)
	e.settle2(&p2, m2, d2)
}

// shareMap divides the map station.
func (e *splitSRPT) shareMap(one, two bool, light float64) (first, second float64) {
	switch {
	case one && two || e.strict:
		first, second = 1-light, light
	case one:
		first = 1
	case two:
		second = 1
	}
	if !one {
		first = 0
	}
	if !two {
		second = 0
	}
	e.mapping = first + second
	return first, second
}

// choose1 selects the served map-heavy jobs.
func (e *splitSRPT) choose1(p *part, m int) {
	if m >= 0 {
		p.m = &e.mapHeavy[m]
	}
	switch n := len(e.mapped); {
	case n > 0:
		p.d = &e.mapped[n-1]
	case m >= 0 && p.m.a > 0:
		p.d = p.m
	case m >= 0:
		p.inflow = float64(p.mapRate * p.m.ratio)
		p.want = p.inflow
		if e.waiting > 0 {
			for m--; e.mapHeavy[m].a == 0; {
				m--
			}
			p.d = &e.mapHeavy[m]
		}
	}
	if p.d != nil {
		p.want = forever
	}
}

// choose2 selects the served shuffle-heavy jobs, and d's index in the list.
func (e *splitSRPT) choose2(p *part, m int) (d int) {
	if m >= 0 {
		p.m = &e.heavy[m]
	}
	d = -1
	switch head := len(e.heavy) - 1; {
	case head < 0:
		return d
	case e.heavy[head].a > 0:
		d = head
	default: // the head is being mapped
		p.inflow = float64(p.mapRate * p.m.ratio)
		p.want = p.inflow
		if e.ready > 0 {
			for d = head - 1; e.heavy[d].a == 0; {
				d--
			}
		}
	}
	if d >= 0 {
		p.d = &e.heavy[d]
		p.want = forever
	}
	return d
}

// share gives the class a part of the shuffle.
func (p *part) share(capacity float64) {
	inflow := min(p.inflow, capacity)
	rest := capacity - inflow
	if p.m != nil {
		switch {
		case p.m == p.d:
			p.net = float64(p.mapRate*p.m.ratio) - rest
		case p.inflow > 0:
			p.net = p.inflow - inflow
		default:
			p.net = float64(p.mapRate * p.m.ratio)
		}
	}
	if p.drop = rest; p.m == p.d {
		p.drop = -p.net
	}
	p.inflow = inflow
}

// Events that end a step.
const (
	nothing = iota
	mapped1
	mapped2
	drained1
	drained2
	passed
)

// pass advances time to the first event.
func (e *splitSRPT) pass(p1, p2 *part, to float64) {
	wait, event := to-e.now, nothing
	for k, p := range [...]*part{p1, p2} {
		if p.m != nil && p.m.x <= p.mapRate*wait {
			wait, event = p.m.x/p.mapRate, mapped1+k
		}
		if p.d != nil && p.drop > 0 && p.d.a < p.drop*wait {
			wait, event = p.d.a/p.drop, drained1+k
		}
	}
	// Among the shuffle-heavy jobs one that only drains may catch up with the head.
	if p2.d != nil && p2.m != p2.d && p2.inflow > 0 && p2.drop > p2.inflow {
		if t := (p2.d.key - p2.m.key) / (p2.drop - p2.inflow); t < wait {
			wait, event = max(0, t), passed
		}
	}
	if e.now += wait; event == nothing {
		e.now = to
	}
	for k, p := range [...]*part{p1, p2} {
		if p.m != nil {
			p.m.a = max(0, p.m.a+p.net*wait)
			p.m.x = max(0, p.m.x-p.mapRate*wait)
			if event == mapped1+k {
				p.m.x = 0
			}
		}
		if p.d != nil {
			if p.d != p.m {
				p.d.a = max(0, p.d.a-p.drop*wait)
			}
			if event == drained1+k {
				p.d.a = 0
			}
		}
	}
	if event == passed {
		p2.d.key = min(p2.d.key, math.Nextafter(p2.m.key, 0)) // whatever the rounding
	}
}

// settle1 restores the places of the served map-heavy jobs.
func (e *splitSRPT) settle1(p *part) {
	if n := len(e.mapped) - 1; n >= 0 && p.d == &e.mapped[n] {
		if p.d.key = p.d.a; p.d.a == 0 {
			j := *p.d
			e.mapped = e.mapped[:n]
			e.leave(&j)
		}
	} else if p.d != nil && p.d != p.m {
		e.waiting += p.d.counts()
	}
	if p.m == nil {
		return
	}
	p.m.key = p.m.x
	e.waiting += p.m.counts()
	if p.m.x > 0 {
		return
	}
	j := *p.m
	if e.mapHeavy = e.mapHeavy[:len(e.mapHeavy)-1]; j.a == 0 {
		e.leave(&j)
		return
	}
	e.waiting--
	j.key = j.a
	e.mapped = place(e.mapped, j)
}

// settle2 does the same for the shuffle-heavy jobs, the later in the list first, so that the
// other's index stays.
func (e *splitSRPT) settle2(p *part, m, d int) {
	if p.d == nil {
		d = -1
	}
	e.settle(max(m, d))
	if m != d {
		e.settle(min(m, d))
	}
}

func (e *splitSRPT) settle(at int) {
	if at < 0 {
		return
	}
	j := &e.heavy[at]
	e.ready += j.counts()
	if j.x == 0 && j.a == 0 {
		gone := *j
		e.heavy = slices.Delete(e.heavy, at, at+1)
		e.leave(&gone)
		return
	}
	j.key = min(j.key, j.a+j.ratio*j.x)
	moveUp(e.heavy, at)
}

// leave counts a finished job and, if it was the least unbalanced, finds the next.
func (e *splitSRPT) leave(j *job) {
	e.done(j.size, e.now-j.born)
	if j.unbalance > e.least {
		return
	}
	e.least = math.Inf(1)
	for _, list := range [...][]job{e.mapHeavy, e.mapped, e.heavy} {
		for i := range list {
			e.least = min(e.least, list[i].unbalance)
		}
	}
}
