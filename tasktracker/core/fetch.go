package core

import (
	"cmp"
	"container/heap"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// host is a shuffle service that outputs are fetched from.
type host struct {
	addr   string
	active int
	queues []*queue // by job

	failures int           // in a row, those at the same time once
	failed   time.Duration // when the last one was counted
	until    time.Duration // it is not asked again before
}

// queue is what a job has to fetch from a host, and fetches.
type queue struct {
	job    *job
	host   *host
	active int
	places []place
	gone   bool // from its job and its host
}

// stallWeight is how many failures a fetch counts for that took long to fail.
const stallWeight = 3

// place is an entry's place in a host's queue or in the retries. It is void when
// the entry has taken another since.
type place struct {
	entry  *entry
	ticket int
	due    time.Duration // of a retry
}

func (p *place) void() bool { return p.entry.ticket != p.ticket }

// fetch is a fetch or a lookup under way.
type fetch struct {
	id     int
	begun  time.Duration
	entry  *entry // nil: cancelled
	job    *job
	output wire.MapOutput
	queue  *queue   // nil: a lookup
	source *attempt // of a lookup
	file   string
}

// want has an entry's output gathered, if the leader has told where it is.
func (c *Core) want(e *entry) {
	o, known := e.home.job.outputs[e.m]
	e.ticket = next(&c.last.ticket)
	switch {
	case !known:
		e.state = unknown
	case o.Tracker == c.cfg.Tracker:
		c.lookUp(e, o)
	default:
		c.enqueue(c.host(o.Addr), e)
	}
}

func (c *Core) enqueue(h *host, e *entry) {
	e.state = queued
	q := c.queue(h, e.home.job)
	q.places = append(q.places, place{entry: e, ticket: e.ticket})
}

func (c *Core) host(addr string) *host {
	i, ok := slices.BinarySearchFunc(c.hosts, addr, func(h *host, a string) int { return cmp.Compare(h.addr, a) })
	if !ok {
		c.hosts = slices.Insert(c.hosts, i, &host{addr: addr})
	}
	return c.hosts[i]
}

// lookUp uses an output of this tracker in place.
func (c *Core) lookUp(e *entry, o wire.MapOutput) {
	source := c.attempts[mapAttempt(e.home.job.id, o)]
	if source == nil || !source.hasOutput() {
		e.state = gone
		c.complain(e, o.Attempt, fmt.Sprintf("tracker %s has no such output", c.cfg.Tracker), false)
		return
	}
	source.places++
	f := c.begin(e, o)
	f.source = source
	f.file = MapOutputPath(source.disk.path, f.job.id, o.Map, o.Attempt)
	c.do(Fetch{Fetch: f.id, Output: o, Job: f.job.id, Partition: e.home.partition, InPlace: true, File: f.file})
}

func (c *Core) begin(e *entry, o wire.MapOutput) *fetch {
	f := &fetch{id: next(&c.last.fetch), begun: c.now, entry: e, job: e.home.job, output: o}
	e.state, e.fetch = fetching, f
	c.fetches[f.id] = f
	f.job.busy++
	return f
}

func (c *Core) startFetch(q *queue, e *entry) {
	o := e.home.job.outputs[e.m]
	f := c.begin(e, o)
	f.queue = q
	c.count(q, 1)
	f.file = path.Join(e.home.dir(), fmt.Sprintf("map-%d-%d-%d", o.Map, o.Attempt, f.id))
	c.do(Fetch{
		Fetch: f.id, Output: o, Job: f.job.id, Partition: e.home.partition,
		File: f.file,
	})
}

func (c *Core) cancelFetch(e *entry) {
	if e.fetch != nil {
		c.do(CancelFetch{e.fetch.id})
		e.fetch.entry, e.fetch = nil, nil
	}
}

func (c *Core) fetchDone(ev FetchDone) {
	f := c.fetches[ev.Fetch]
	if f == nil {
		return
	}
	delete(c.fetches, f.id)
	if f.queue != nil {
		c.count(f.queue, -1)
	}
	switch {
	case f.entry != nil && ev.Error == "":
		if f.queue != nil {
			f.queue.host.failures, f.queue.host.until = 0, 0
			c.pace.bytes += float64(ev.Segment.Length)
		}
		c.hold(f.entry, f, ev.Segment, ev.Records)
	case f.entry != nil:
		c.leaveLookup(f)
		c.fetchFailed(f, ev)
	case ev.Error == "":
		c.dispose(f)
	default:
		c.leaveLookup(f)
	}
	c.done(f.job)
}

// dispose gives up what a fetch has brought.
func (c *Core) dispose(f *fetch) {
	if f.source == nil {
		c.do(Remove{f.file})
	}
	c.leaveLookup(f)
}

func (c *Core) leaveLookup(f *fetch) {
	if f.source != nil {
		c.leavePlace(f.source)
	}
}

// fetchFailed tries again later: what a host has rests with the host. When trying
// has no sense, or the host has failed some times in a row, the leader is told: it
// has the maps run again, or knows better. Damage that may have happened on the way
// is tried once more. The own disk's failures are no news of the output.
func (c *Core) fetchFailed(f *fetch, ev FetchDone) {
	e := f.entry
	e.fetch = nil
	switch {
	case f.source != nil:
		if ev.Local {
			c.suspect(f.source.disk)
		}
		e.state = gone
		c.complain(e, f.output.Attempt, ev.Error, ev.Corrupt)
	case ev.Local:
		c.rest(e, c.cfg.RetryBase)
		c.strike(e.home.disk, ev.Error)
	case ev.Gone, ev.Corrupt && e.tries > 0:
		c.giveUp(e, ev.Error, ev.Corrupt)
	case ev.Corrupt:
		e.tries++
		c.rest(e, c.cfg.RetryBase)
	default:
		e.ticket = next(&c.last.ticket)
		c.enqueue(f.queue.host, e)
		c.hostFailed(f, ev)
	}
}

func (c *Core) rest(e *entry, wait time.Duration) {
	e.state, e.ticket = resting, next(&c.last.ticket)
	heap.Push(&c.retries, place{entry: e, ticket: e.ticket, due: c.now + wait})
}

// giveUp has the leader told of an output, and tries it again all the same.
func (c *Core) giveUp(e *entry, reason string, corrupt bool) {
	c.complain(e, e.home.job.outputs[e.m].Attempt, reason, corrupt)
	c.rest(e, c.cfg.RetryMax)
}

// hostFailed lets a host rest, longer each time, and gives up all that is there
// when it has failed too often. Fetches that fail together tell as much as one.
func (c *Core) hostFailed(f *fetch, ev FetchDone) {
	h := f.queue.host
	if h.failures > 0 && f.begun <= h.failed {
		return
	}
	h.failures++
	if ev.Stalled {
		h.failures += stallWeight - 1
	}
	h.failed = c.now
	h.until = c.now + min(c.cfg.RetryBase<<min(h.failures-1, 20), c.cfg.RetryMax)
	if h.failures < c.cfg.FetchTries {
		return
	}
	for _, q := range h.queues {
		places := q.places
		q.places = nil
		c.ended = append(c.ended, q)
		for _, p := range places {
			if !p.void() {
				c.giveUp(p.entry, ev.Error, false)
			}
		}
	}
}

// complain tells the leader that an output cannot be had. It is told again after
// the next welcome.
func (c *Core) complain(e *entry, attempt int, reason string, corrupt bool) {
	e.lost, e.corrupt, e.attempt = reason, corrupt, attempt
	c.tell(&wire.OutputLost{Job: e.home.job.id, Map: e.m, Attempt: attempt, Corrupt: corrupt, Reason: reason})
}

func (c *Core) lostAgain() {
	for _, j := range c.sortedJobs() {
		for _, h := range j.homes {
			for i := range h.entries {
				if e := &h.entries[i]; e.lost != "" {
					c.complain(e, e.attempt, e.lost, e.corrupt)
				}
			}
		}
	}
}

func (c *Core) retryFetches() {
	for len(c.retries) > 0 && (c.retries[0].due <= c.now || c.retries[0].void()) {
		p := heap.Pop(&c.retries).(place)
		if !p.void() {
			c.want(p.entry)
		}
	}
}

// retryHeap orders retries by time, then by ticket.
type retryHeap []place

func (h retryHeap) Len() int { return len(h) }
func (h retryHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].due, h[j].due), cmp.Compare(h[i].ticket, h[j].ticket)) < 0
}
func (h retryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *retryHeap) Push(x any)   { *h = append(*h, x.(place)) }
func (h *retryHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
