package core

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// host is a shuffle service of another tracker.
type host struct {
	addr    string
	tracker string // its name
	active  int
	queues  []*queue // by job

	failures     int           // consecutive failures; concurrent failures count once
	failingSince time.Duration // time of the first of them, or when the host was added
	lastFailure  time.Duration // time of the last counted failure
	pausedUntil  time.Duration // no fetch starts before this time
}

// queue has a job's waiting fetches from a host, and counts its running fetches.
type queue struct {
	job     *job
	host    *host
	active  int
	waiting []int32 // maps with outputs that homes want, oldest first; those that no home wants any more are skipped
	last    int     // partition of the last fetch: homes take turns
	removed bool    // removed from its job and its host
}

// stallWeight is the number of failures that a stalled fetch counts as.
const stallWeight = 3

// retry is when to fetch an entry's output again. It is void if the entry has a newer ticket.
type retry struct {
	entry  *entry
	ticket int
	at     time.Duration
}

func (r *retry) void() bool { return r.entry.ticket != r.ticket }

// fetch is a running fetch or lookup.
type fetch struct {
	id        int
	startedAt time.Duration
	entry     *entry // nil: cancelled
	job       *job
	output    wire.MapOutput
	queue     *queue   // nil: a lookup
	source    *attempt // of a lookup
	file      string
	batch     *batch // nil: of one output
}

// requestOutput fetches an output for a home, if the leader has named one. The home neither holds nor
// wants it.
func (c *Core) requestOutput(h *home, m int) {
	if e := h.entries[m]; e != nil {
		e.state, e.ticket = idle, next(&c.last.ticket)
	}
	o := h.job.outputs[m]
	switch {
	case o == nil || !o.named:
	case o.GivenUp:
		c.hold(h, o.MapOutput) // the map was given up: it has no records
	case o.Tracker == c.cfg.Tracker && (!c.inBatches(h, &o.MapOutput) || c.outputHere(h.job, o.MapOutput) == nil):
		c.lookUp(h, o.MapOutput)
	default:
		from := c.host(o.Addr)
		from.tracker = o.Tracker
		q := c.queue(from, h.job)
		if q.add(h, m); len(q.waiting) == 0 { // a batch has it
			c.endedQueues = append(c.endedQueues, q)
		}
	}
}

func (c *Core) host(addr string) *host {
	i, ok := slices.BinarySearchFunc(c.hosts, addr, func(h *host, a string) int { return cmp.Compare(h.addr, a) })
	if !ok {
		c.hosts = slices.Insert(c.hosts, i, &host{addr: addr, failingSince: c.now})
	}
	return c.hosts[i]
}

// lookUp finds an output of this tracker, to use it in place.
func (c *Core) lookUp(h *home, o wire.MapOutput) {
	e := h.entry(o.Map)
	source := c.outputHere(h.job, o)
	if source == nil {
		e.state = missing
		c.reportLost(e, o.Attempt, fmt.Sprintf("tracker %s has no such output", c.cfg.Tracker), false)
		return
	}
	source.inPlaceUses++
	f := c.addFetch(e, o)
	f.source = source
	f.file = MapOutputPath(source.disk.path, f.job.id, o.Map, o.Attempt)
	c.do(Fetch{Fetch: f.id, Output: o, Job: f.job.id, Partition: h.partition, InPlace: true, File: f.file})
}

func (c *Core) addFetch(e *entry, o wire.MapOutput) *fetch {
	f := &fetch{id: next(&c.last.fetch), startedAt: c.now, entry: e, job: e.home.job, output: o}
	e.state, e.fetch = fetching, f
	c.fetches[f.id] = f
	f.job.busy++
	return f
}

func (c *Core) startFetch(q *queue, h *home, m int) {
	o := h.job.outputs[m].MapOutput
	f := c.addFetch(h.entry(m), o)
	f.queue = q
	c.countFetch(q, 1)
	f.file = path.Join(h.dir(), fmt.Sprintf("map-%d-%d-%d", o.Map, o.Attempt, f.id))
	c.do(Fetch{
		Fetch: f.id, Output: o, Job: f.job.id, Partition: h.partition,
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
	if f == nil || f.batch != nil {
		return
	}
	delete(c.fetches, f.id)
	if f.queue != nil {
		c.countFetch(f.queue, -1)
	}
	switch {
	case f.entry != nil && ev.Error == "":
		if f.queue != nil {
			f.queue.host.failures, f.queue.host.pausedUntil = 0, 0
			c.lastFetched[f.output.Tracker] = c.now
			delete(f.job.unreachable, f.output.Map)
			c.fetchMeter.bytes += float64(ev.Segment.Length)
		}
		c.addFetched(f.entry, f, ev.Segment, ev.Records)
	case f.entry != nil:
		c.releaseLookup(f)
		c.machine.failedFetches++
		c.fetchFailed(f, ev)
		c.forgetUnreachable(f.job, f.output.Map)
	case ev.Error == "":
		c.discardFetched(f)
	default:
		c.releaseLookup(f)
	}
	c.endWork(f.job)
}

// discardFetched discards the result of a fetch.
func (c *Core) discardFetched(f *fetch) {
	if f.source == nil {
		c.do(Remove{f.file})
	}
	c.releaseLookup(f)
}

func (c *Core) releaseLookup(f *fetch) {
	if f.source != nil {
		c.releaseInPlace(f.source)
	}
}

// fetchFailed retries an output later, or reports it lost:
//
//   - This tracker is exhausted: retried.
//   - It failed in place: reported at once.
//   - This tracker's own disk failed: retried, as the output may be good.
//   - It is missing, or was corrupt twice: reported. The network may have caused the
//     first corruption.
//   - Any other failure: the whole host pauses, see hostFailed.
func (c *Core) fetchFailed(f *fetch, ev FetchDone) {
	e := f.entry
	e.fetch = nil
	switch {
	case ev.Exhausted:
		c.retryLater(e, c.cfg.RetryBase)
	case f.source != nil:
		if ev.DiskFailed {
			c.suspect(f.source.disk)
		}
		e.state = missing
		c.reportLost(e, f.output.Attempt, ev.Error, ev.Corrupt)
	case ev.DiskFailed:
		c.retryLater(e, c.cfg.RetryBase)
		c.strike(e.home.disk, ev.Error)
	case ev.Missing, ev.Corrupt && e.tries > 0:
		c.reportAndRetry(e, ev.Error, ev.Corrupt)
	case ev.Corrupt:
		e.tries++
		c.retryLater(e, c.cfg.RetryBase)
	default:
		e.state, e.ticket = idle, next(&c.last.ticket)
		if e.tries == 0 && e.lostReason == "" {
			delete(e.home.entries, e.mapN)
		}
		q := c.queue(f.queue.host, f.job)
		q.add(e.home, e.mapN)
		q.toBack(e.mapN)
		c.hostFailed(f, ev)
	}
}

func (c *Core) retryLater(e *entry, wait time.Duration) {
	e.state, e.ticket = retrying, next(&c.last.ticket)
	heap.Push(&c.retries, retry{e, e.ticket, c.now + wait})
}

// reportAndRetry reports an output lost, and retries it after Config.RetryMax.
func (c *Core) reportAndRetry(e *entry, reason string, corrupt bool) {
	c.reportLost(e, e.home.job.outputs[e.mapN].Attempt, reason, corrupt)
	c.retryLater(e, c.cfg.RetryMax)
}

// hostFailed pauses a host, longer each time. After Config.FetchTries failures it reports
// all waiting outputs there lost: each once, however many homes want it. Concurrent failures count once.
func (c *Core) hostFailed(f *fetch, ev FetchDone) {
	h := f.queue.host
	if h.failures > 0 && f.startedAt <= h.lastFailure {
		return
	}
	if h.failures == 0 {
		h.failingSince = c.now
	}
	h.failures++
	if ev.Stalled {
		h.failures += stallWeight - 1
	}
	h.lastFailure = c.now
	h.pausedUntil = c.now + min(c.cfg.RetryBase<<min(h.failures-1, 20), c.cfg.RetryMax)
	if h.failures < c.cfg.FetchTries {
		return
	}
	for _, q := range h.queues {
		c.setAside(q, ev.Error)
		c.endedQueues = append(c.endedQueues, q)
	}
}

// reportLost reports that an output cannot be fetched. The tracker repeats the report after
// each Welcome.
func (c *Core) reportLost(e *entry, attempt int, reason string, corrupt bool) {
	e.lostReason, e.corrupt, e.attempt = reason, corrupt, attempt
	c.sendLost(e)
}

func (c *Core) sendLost(e *entry) {
	c.send(&wire.OutputLost{Job: e.home.job.id, Map: e.mapN, Attempt: e.attempt, Corrupt: e.corrupt, Reason: e.lostReason})
}

// reachedSince lists the trackers, except one, with a successful fetch since a time.
func (c *Core) reachedSince(t time.Duration, except string) (names []string) {
	for name, last := range c.lastFetched {
		if last >= t && name != except {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), wire.MaxReached)]
}

// awaited lists the trackers from which homes still have to fetch, by job.
func (c *Core) awaited() (all []wire.Awaited) {
	for _, j := range c.queued {
		if names := j.awaited(c.cfg.Tracker); len(names) > 0 && len(all) < wire.MaxAwaitedJobs {
			all = append(all, wire.Awaited{Job: j.id, Trackers: names})
		}
	}
	return all
}

// awaited lists the trackers from which homes of a job still have to fetch, if they are few and no fetch
// from them has failed: reports of lost outputs tell which tracker is at fault then.
func (j *job) awaited(self string) (names []string) {
	for _, q := range j.queues {
		if q.active == 0 && len(q.waiting) == 0 || q.host.tracker == self {
			continue
		}
		if len(names) == wire.MaxAwaited || q.host.failures > 0 {
			return nil
		}
		names = append(names, q.host.tracker)
	}
	return names
}

func (c *Core) resendLost() {
	for _, j := range c.sortedJobs() {
		for _, m := range slices.Sorted(maps.Keys(j.unreachable)) {
			c.sendUnreachable(j, m)
		}
		for _, h := range j.homes {
			for _, m := range slices.Sorted(maps.Keys(h.entries)) {
				if e := h.entries[m]; e.lostReason != "" {
					c.sendLost(e)
				}
			}
		}
	}
}

func (c *Core) retryFetches() {
	for len(c.retries) > 0 && (c.retries[0].at <= c.now || c.retries[0].void()) {
		r := heap.Pop(&c.retries).(retry)
		if !r.void() {
			c.requestOutput(r.entry.home, r.entry.mapN)
		}
	}
	c.bringBack()
}

// retryHeap orders retries by time, then by ticket.
type retryHeap []retry

func (h retryHeap) Len() int { return len(h) }
func (h retryHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].ticket, h[j].ticket)) < 0
}
func (h retryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *retryHeap) Push(x any)   { *h = append(*h, x.(retry)) }
func (h *retryHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
