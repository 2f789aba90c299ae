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
	queue  []place
}

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
	entry  *entry // nil: cancelled
	job    *job
	output wire.MapOutput
	host   *host    // nil: a lookup
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
		e.state = queued
		h := c.host(o.Addr)
		h.queue = append(h.queue, place{entry: e, ticket: e.ticket})
	}
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
	f.file = MapOutputPath(c.cfg.Dir, f.job.id, o.Map, o.Attempt)
	c.do(Fetch{Fetch: f.id, Output: o, Job: f.job.id, Partition: e.home.partition, InPlace: true, File: f.file})
}

func (c *Core) begin(e *entry, o wire.MapOutput) *fetch {
	f := &fetch{id: next(&c.last.fetch), entry: e, job: e.home.job, output: o}
	e.state, e.fetch = fetching, f
	c.fetches[f.id] = f
	f.job.busy++
	return f
}

// startFetches goes round the hosts as long as one has work and may be asked.
func (c *Core) startFetches() {
	for idle := 0; c.fetching < c.cfg.Fetches && idle < len(c.hosts); c.turn++ {
		c.turn %= len(c.hosts)
		h := c.hosts[c.turn]
		if e := c.nextOf(h); e != nil {
			c.startFetch(h, e)
			idle = 0
		} else {
			idle++
		}
	}
	c.hosts = slices.DeleteFunc(c.hosts, func(h *host) bool { return len(h.queue) == 0 && h.active == 0 })
}

func (c *Core) nextOf(h *host) *entry {
	if h.active >= c.cfg.FetchesPerHost {
		return nil
	}
	for len(h.queue) > 0 {
		p := h.queue[0]
		h.queue[0] = place{}
		h.queue = h.queue[1:]
		if !p.void() {
			return p.entry
		}
	}
	return nil
}

func (c *Core) startFetch(h *host, e *entry) {
	o := e.home.job.outputs[e.m]
	f := c.begin(e, o)
	f.host = h
	h.active++
	c.fetching++
	dir := c.homeDir(f.job.id, e.home.partition)
	f.file = path.Join(dir, fmt.Sprintf("map-%d-%d-%d", o.Map, o.Attempt, f.id))
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
	if f.host != nil {
		f.host.active--
		c.fetching--
	}
	switch {
	case f.entry != nil && ev.Error == "":
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

// fetchFailed tries again later. After some tries, or when trying has no sense,
// the leader is told: it has the map run again, or knows better. Damage that may
// have happened on the way is tried once more.
func (c *Core) fetchFailed(f *fetch, ev FetchDone) {
	e := f.entry
	e.fetch = nil
	e.tries++
	if f.source != nil {
		e.state = gone
		c.complain(e, f.output.Attempt, ev.Error, ev.Corrupt)
		return
	}
	wait := min(c.cfg.RetryBase<<min(e.tries-1, 20), c.cfg.RetryMax)
	if ev.Gone || ev.Corrupt && e.tries > 1 || e.tries%c.cfg.FetchTries == 0 {
		c.complain(e, f.output.Attempt, ev.Error, ev.Corrupt)
		wait = c.cfg.RetryMax
	}
	e.state, e.ticket = resting, next(&c.last.ticket)
	heap.Push(&c.retries, place{entry: e, ticket: e.ticket, due: c.now + wait})
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
