package core

import "slices"

// A queue has each map once, however many homes want its output: homes have a bit for it, and the job
// counts them. So queues are O(maps), not O(maps · homes), and so is what is known of maps set aside.

// add queues a map's output for a home.
func (q *queue) add(h *home, m int) {
	j := q.job
	for len(j.wants) <= m {
		j.wants = append(j.wants, 0)
	}
	j.wants[m]++
	h.wanted.Add(m)
	if !j.inBatch.Has(m) && j.inQueue.Add(m) {
		q.waiting = append(q.waiting, int32(m))
	}
}

// unqueue notes that a home wants a map no more. The map stays in its queue, which skips it later.
func (h *home) unqueue(m int) {
	h.wanted.Remove(m)
	h.job.wants[m]--
}

// skip drops the first map.
func (q *queue) skip() {
	q.job.inQueue.Remove(int(q.waiting[0]))
	q.waiting, q.last = q.waiting[1:], -1
}

// toBack makes a map the last one, after a failed fetch.
func (q *queue) toBack(m int) {
	i := slices.Index(q.waiting, int32(m))
	q.waiting = append(slices.Delete(q.waiting, i, i+1), int32(m))
}

// take takes the first map, for one of the homes that want it. They take turns, so that an output which
// cannot be fetched for one of them does not stop the others. See hasNext.
func (q *queue) take() (*home, int) {
	m := int(q.waiting[0])
	homes := q.job.homes
	from, _ := q.job.homeIndex(q.last + 1)
	for i := range homes {
		h := homes[(from+i)%len(homes)]
		if !h.wanted.Has(m) {
			continue
		}
		q.last = h.partition
		if h.unqueue(m); q.job.wants[m] == 0 {
			q.skip()
		}
		return h, m
	}
	panic("core: a queued map output is wanted by no home")
}

// takeAll empties a queue. It returns the maps that homes want, and still do.
func (q *queue) takeAll() (maps []int32) {
	for _, m := range q.waiting {
		q.job.inQueue.Remove(int(m))
	}
	maps = slices.DeleteFunc(q.waiting, func(m int32) bool { return q.job.wants[m] == 0 })
	q.waiting = nil
	return maps
}

// leaveQueue removes a map from the queue of the host where its output was: it is on another host now. An
// empty address means any host: after the loss of this tracker no output is named, and some may be queued.
func (j *job) leaveQueue(m int, addr string) {
	if !j.inQueue.Remove(m) {
		return
	}
	for _, q := range j.queues {
		if addr == "" || q.host.addr == addr { // the others may be long
			q.waiting = slices.DeleteFunc(q.waiting, func(x int32) bool { return int(x) == m })
		}
	}
}
