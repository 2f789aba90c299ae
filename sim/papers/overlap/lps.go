package overlap

import "slices"

// lps simulates k-LPS: the first k jobs with map work share the map station equally, and the
// shuffle is shared max-min. A job with work ready could use the whole shuffle, so all such
// jobs have the same rate, the level. Another job has the output rate of its maps, which is at
// most the level: otherwise the job would become ready.
//
// All jobs in the map have the same rate. mapClock is the integral of this rate; a job is mapped
// when mapClock reaches the job's end. drainClock is the integral of the level; a mapped job is
// drained when drainClock reaches the job's end. O(k) an event, plus O(log n) for n mapped jobs.
type lps struct {
	clock
	k                    int
	unshared             bool // the unused part of a job's share of the shuffle is lost
	mapClock, drainClock float64
	waiting              queue
	piped                []lpsJob  // in the map, with nothing ready, by ratio
	ready                []lpsJob  // in the map, with work ready
	drained              drainHeap // mapped, with work ready
}

type lpsJob struct {
	end   float64 // of its map on mapClock, or of its shuffle on drainClock
	ratio float64
	a     float64 // shuffle work ready, while in the map
	born  float64
	size  float64
}

func newLPS(k int, unshared bool) *lps { return &lps{k: k, unshared: unshared} }

func (e *lps) arrive(a arrival) {
	for e.now < a.at {
		e.step(a.at)
	}
	e.waiting.push(lpsJob{end: a.x, ratio: a.ratio, born: a.at, size: a.x * max(1, a.ratio)})
	e.admit()
}

// admit moves waiting jobs into the map.
func (e *lps) admit() {
	for len(e.piped)+len(e.ready) < e.k && e.waiting.len() > 0 {
		j := e.waiting.pop()
		j.end += e.mapClock
		e.piped = insertByRatio(e.piped, j)
	}
}

// insertByRatio inserts a job into a list in order of ratio.
func insertByRatio(list []lpsJob, j lpsJob) []lpsJob {
	list = append(list, j)
	i := len(list) - 1
	for ; i > 0 && list[i-1].ratio > j.ratio; i-- {
		list[i] = list[i-1]
	}
	list[i] = j
	return list
}

func (e *lps) finish() {
	for len(e.piped)+len(e.ready)+len(e.drained) > 0 {
		e.step(forever)
	}
}

// level returns the shuffle rate of the ready jobs, given the map rate of each job. Piped jobs
// with a higher output rate become ready.
func (e *lps) level(rate float64) float64 {
	if e.unshared {
		return e.unsharedLevel(rate)
	}
	inflow := 0.0
	for i := range e.piped {
		inflow += e.piped[i].ratio
	}
	for {
		left, jobs := 1-rate*inflow, float64(len(e.ready)+len(e.drained))
		last := len(e.piped) - 1
		switch {
		case last >= 0 && rate*e.piped[last].ratio*jobs > left || jobs == 0 && left < 0:
			inflow -= e.piped[last].ratio
			e.ready = append(e.ready, e.piped[last])
			e.piped = e.piped[:last]
		case jobs == 0:
			e.shuffling = 1 - left
			return 0
		default:
			e.shuffling = 1
			return left / jobs
		}
	}
}

// unsharedLevel returns an equal part for each job in the shuffle.
func (e *lps) unsharedLevel(rate float64) float64 {
	level := 1 / float64(len(e.piped)+len(e.ready)+len(e.drained))
	for last := len(e.piped) - 1; last >= 0 && rate*e.piped[last].ratio > level; last-- {
		e.ready = append(e.ready, e.piped[last])
		e.piped = e.piped[:last]
	}
	return level
}

// step advances to the next event, or to that time if it is earlier.
func (e *lps) step(to float64) {
	e.mapping, e.shuffling = 0, 0
	inMap := len(e.piped) + len(e.ready)
	if inMap+len(e.drained) == 0 {
		e.now = to
		return
	}
	rate := 0.0
	if inMap > 0 {
		e.mapping, rate = 1, 1/float64(inMap)
	}
	level := e.level(rate)
	ev := e.next(rate, level, to-e.now)
	if e.now += ev.wait; ev.kind == nothing {
		e.now = to
	}
	e.mapClock += rate * ev.wait
	e.drainClock += level * ev.wait
	for i := range e.ready {
		j := &e.ready[i]
		j.a = max(0, j.a+(float64(rate*j.ratio)-level)*ev.wait)
	}
	e.apply(ev)
	if len(e.piped)+len(e.ready) == 0 {
		e.mapClock = 0 // so that it stays exact
	}
	if len(e.drained) == 0 {
		e.drainClock = 0
	}
	e.admit()
}

// lpsEvent is the end of a step, with the job's index in its list.
type lpsEvent struct {
	wait float64
	kind int
	at   int
}

const (
	pipedMapped = iota + 1
	readyMapped
	readyDrained
	drainedDone
)

// next returns the first event within the wait.
func (e *lps) next(rate, level, wait float64) lpsEvent {
	ev := lpsEvent{wait: wait}
	until := e.mapClock + rate*wait // mapClock after the wait
	if rate == 0 {
		until = e.mapClock
	}
	for i := range e.piped {
		if last := e.piped[i].end; last <= until {
			until, ev.kind, ev.at = last, pipedMapped, i
		}
	}
	for i := range e.ready {
		if last := e.ready[i].end; last <= until {
			until, ev.kind, ev.at = last, readyMapped, i
		}
	}
	if ev.kind != nothing {
		ev.wait = max(0, (until-e.mapClock)/rate)
	}
	for i := range e.ready {
		j := &e.ready[i]
		if drop := level - float64(rate*j.ratio); drop > 0 && j.a < drop*ev.wait {
			ev = lpsEvent{j.a / drop, readyDrained, i}
		}
	}
	if len(e.drained) > 0 {
		if left := max(0, e.drained[0].end-e.drainClock); left <= level*ev.wait {
			ev = lpsEvent{left / level, drainedDone, 0}
		}
	}
	return ev
}

// apply moves the job of an event to its next list.
func (e *lps) apply(ev lpsEvent) {
	switch ev.kind {
	case pipedMapped:
		j := e.piped[ev.at]
		e.piped = slices.Delete(e.piped, ev.at, ev.at+1)
		e.count(j.size, e.now-j.born)
	case readyMapped:
		j := e.dropReady(ev.at)
		j.end = e.drainClock + j.a
		e.drained.push(j)
	case readyDrained:
		j := e.dropReady(ev.at)
		j.a = 0
		e.piped = insertByRatio(e.piped, j)
	case drainedDone:
		j := e.drained.pop()
		e.count(j.size, e.now-j.born)
	}
}

func (e *lps) dropReady(at int) lpsJob {
	j, n := e.ready[at], len(e.ready)-1
	e.ready[at] = e.ready[n]
	e.ready = e.ready[:n]
	return j
}

// queue is first in, first out.
type queue struct {
	jobs []lpsJob
	head int
}

func (q *queue) len() int { return len(q.jobs) - q.head }

func (q *queue) push(j lpsJob) {
	if q.head > len(q.jobs)/2 { // reuse the free part
		q.jobs = q.jobs[:copy(q.jobs, q.jobs[q.head:])]
		q.head = 0
	}
	q.jobs = append(q.jobs, j)
}

func (q *queue) pop() lpsJob {
	q.head++
	return q.jobs[q.head-1]
}

// drainHeap is a heap of jobs by end, the least first.
type drainHeap []lpsJob

func (h *drainHeap) push(j lpsJob) {
	*h = append(*h, j)
	list := *h
	at := len(list) - 1
	for at > 0 && list[(at-1)/2].end > j.end {
		list[at] = list[(at-1)/2]
		at = (at - 1) / 2
	}
	list[at] = j
}

func (h *drainHeap) pop() lpsJob {
	first, n := (*h)[0], len(*h)-1
	last := (*h)[n]
	*h = (*h)[:n]
	list, at := *h, 0
	for {
		down := 2*at + 1
		if down+1 < n && list[down+1].end < list[down].end {
			down++
		}
		if down >= n || last.end <= list[down].end {
			break
		}
		list[at] = list[down]
		at = down
	}
	if n > 0 {
		list[at] = last
	}
	return first
}
