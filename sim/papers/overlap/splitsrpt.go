package overlap

import (
	"math"
	"slices"
)

// splitSRPT simulates SplitSRPT. In each list the next job to be served is last. A map-heavy job
// changes lists when it is mapped. Mapped jobs are drained before the other map-heavy jobs, the
// one with the least left first. Shuffle-heavy jobs are all in one list by y(t), in which
// served jobs move up. An event takes O(n) for n jobs present.
type splitSRPT struct {
	clock
	strict   bool    // no lending
	mapHeavy []job   // map-heavy, with map work, by x(t)
	mapped   []job   // map-heavy, without map work, by y(t)
	heavy    []job   // shuffle-heavy, by y(t)
	waiting  int     // jobs of mapHeavy with shuffle work ready
	ready    int     // jobs of heavy with shuffle work ready
	least    float64 // least unbalance of the jobs present: the paper's β(t)
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

// part is the progress of a class in a step: one job is mapped, one is drained. Either may be
// missing, and they may be the same job.
type part struct {
	mapped, drained *job
	mapRate         float64
	inflow          float64 // map output that can be shuffled at once, if nothing is ready before it
	demand          float64 // shuffle rate that the class can use
	net             float64 // growth rate of the mapped job's ready work
	drop            float64 // rate at which the drained job's ready work falls
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
		c1, c2 = min(p1.demand, light), min(p2.demand, 1-light)
	} else {
		c2 = min(p2.demand, 1-min(p1.demand, light))
		c1 = min(p1.demand, 1-c2)
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
		p.mapped = &e.mapHeavy[m]
	}
	switch n := len(e.mapped); {
	case n > 0:
		p.drained = &e.mapped[n-1]
	case m >= 0 && p.mapped.a > 0:
		p.drained = p.mapped
	case m >= 0:
		p.inflow = float64(p.mapRate * p.mapped.ratio)
		p.demand = p.inflow
		if e.waiting > 0 {
			for m--; e.mapHeavy[m].a == 0; {
				m--
			}
			p.drained = &e.mapHeavy[m]
		}
	}
	if p.drained != nil {
		p.demand = forever
	}
}

// choose2 selects the served shuffle-heavy jobs. It returns the index of the drained one.
func (e *splitSRPT) choose2(p *part, m int) (d int) {
	if m >= 0 {
		p.mapped = &e.heavy[m]
	}
	d = -1
	switch head := len(e.heavy) - 1; {
	case head < 0:
		return d
	case e.heavy[head].a > 0:
		d = head
	default: // the head is being mapped
		p.inflow = float64(p.mapRate * p.mapped.ratio)
		p.demand = p.inflow
		if e.ready > 0 {
			for d = head - 1; e.heavy[d].a == 0; {
				d--
			}
		}
	}
	if d >= 0 {
		p.drained = &e.heavy[d]
		p.demand = forever
	}
	return d
}

// share gives the class a part of the shuffle.
func (p *part) share(capacity float64) {
	inflow := min(p.inflow, capacity)
	rest := capacity - inflow
	if p.mapped != nil {
		switch {
		case p.mapped == p.drained:
			p.net = float64(p.mapRate*p.mapped.ratio) - rest
		case p.inflow > 0:
			p.net = p.inflow - inflow
		default:
			p.net = float64(p.mapRate * p.mapped.ratio)
		}
	}
	if p.drop = rest; p.mapped == p.drained {
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
		if p.mapped != nil && p.mapped.x <= p.mapRate*wait {
			wait, event = p.mapped.x/p.mapRate, mapped1+k
		}
		if p.drained != nil && p.drop > 0 && p.drained.a < p.drop*wait {
			wait, event = p.drained.a/p.drop, drained1+k
		}
	}
	// A shuffle-heavy job that is only drained may catch up with the head.
	if p2.drained != nil && p2.mapped != p2.drained && p2.inflow > 0 && p2.drop > p2.inflow {
		if t := (p2.drained.key - p2.mapped.key) / (p2.drop - p2.inflow); t < wait {
			wait, event = max(0, t), passed
		}
	}
	if e.now += wait; event == nothing {
		e.now = to
	}
	for k, p := range [...]*part{p1, p2} {
		if p.mapped != nil {
			p.mapped.a = max(0, p.mapped.a+p.net*wait)
			p.mapped.x = max(0, p.mapped.x-p.mapRate*wait)
			if event == mapped1+k {
				p.mapped.x = 0
			}
		}
		if p.drained != nil {
			if p.drained != p.mapped {
				p.drained.a = max(0, p.drained.a-p.drop*wait)
			}
			if event == drained1+k {
				p.drained.a = 0
			}
		}
	}
	if event == passed {
		p2.drained.key = min(p2.drained.key, math.Nextafter(p2.mapped.key, 0)) // despite rounding
	}
}

// settle1 restores the places of the served map-heavy jobs.
func (e *splitSRPT) settle1(p *part) {
	if n := len(e.mapped) - 1; n >= 0 && p.drained == &e.mapped[n] {
		if p.drained.key = p.drained.a; p.drained.a == 0 {
			j := *p.drained
			e.mapped = e.mapped[:n]
			e.leave(&j)
		}
	} else if p.drained != nil && p.drained != p.mapped {
		e.waiting += p.drained.updateReady()
	}
	if p.mapped == nil {
		return
	}
	p.mapped.key = p.mapped.x
	e.waiting += p.mapped.updateReady()
	if p.mapped.x > 0 {
		return
	}
	j := *p.mapped
	if e.mapHeavy = e.mapHeavy[:len(e.mapHeavy)-1]; j.a == 0 {
		e.leave(&j)
		return
	}
	e.waiting--
	j.key = j.a
	e.mapped = place(e.mapped, j)
}

// settle2 does the same for the shuffle-heavy jobs. The one later in the list comes first, so
// that the index of the other stays.
func (e *splitSRPT) settle2(p *part, m, d int) {
	if p.drained == nil {
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
	e.ready += j.updateReady()
	if j.x == 0 && j.a == 0 {
		finished := *j
		e.heavy = slices.Delete(e.heavy, at, at+1)
		e.leave(&finished)
		return
	}
	j.key = min(j.key, j.a+j.ratio*j.x)
	moveUp(e.heavy, at)
}

// leave counts a finished job. If its unbalance was the least, it finds the next least one.
func (e *splitSRPT) leave(j *job) {
	e.count(j.size, e.now-j.born)
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
