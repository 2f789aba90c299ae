package core

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// shares are the leader's shares of jobs.
type shares struct {
	byJob map[wire.JobID]share
	rest  float64 // for all other jobs together
}

// share is a job's share.
type share struct {
	rank     int     // 1 goes first
	fraction float64 // of Config.Fetches
}

// share replaces the shares. Their sum is limited to 1.
func (c *Core) share(list []wire.JobShare) {
	c.shares = shares{make(map[wire.JobID]share, len(list)), 1}
	for _, s := range list {
		if _, twice := c.shares.byJob[s.Job]; !twice && s.Share >= 0 {
			fraction := min(s.Share, c.shares.rest)
			c.shares.byJob[s.Job] = share{len(c.shares.byJob) + 1, fraction}
			c.shares.rest -= fraction
		}
	}
	c.do(Share{list})
}

// shareBurst multiplies the limits of fetches for jobs below their share, so that they need
// not wait for earlier fetches of other jobs.
const shareBurst = 4

// startFetches starts fetches: first for jobs below their share, in fetchOrder, then for
// any job in that order.
func (c *Core) startFetches() {
	for len(c.queued) > 0 {
		q := c.nextFetch()
		if q == nil {
			break
		}
		if !c.startBatch(q) {
			h, m := q.take()
			c.startFetch(q, h, m)
		}
	}
	c.removeUnused()
}

// nextFetch returns the queue with the next fetch, or nil.
func (c *Core) nextFetch() *queue {
	if c.fetching >= shareBurst*c.cfg.Fetches {
		return nil
	}
	order, others := c.fetchOrder()
	for _, j := range order {
		if j.fetching < c.guaranteed(j, others) {
			if q := c.nextForJob(j, true); q != nil {
				return q
			}
		}
	}
	if c.fetching >= c.cfg.Fetches {
		return nil
	}
	for _, j := range order {
		if q := c.nextForJob(j, false); q != nil {
			return q
		}
	}
	return nil
}

// fetchOrder sorts the jobs with queues by rank. Jobs without a share come last, by their
// number of fetches. It also returns the number of these other jobs.
func (c *Core) fetchOrder() (order []*job, others int) {
	rank := func(j *job) int { return cmp.Or(c.shares.byJob[j.id].rank, math.MaxInt) }
	order = slices.Clone(c.queued)
	slices.SortStableFunc(order, func(a, b *job) int {
		first, second := rank(a), rank(b)
		if first == second {
			return cmp.Compare(a.fetching, b.fetching)
		}
		return cmp.Compare(first, second)
	})
	for _, j := range order {
		if rank(j) == math.MaxInt {
			others++
		}
	}
	return order, others
}

// guaranteed returns the number of concurrent fetches that a job may always have.
func (c *Core) guaranteed(j *job, others int) int {
	fraction := c.shares.rest / float64(max(others, 1))
	if s := c.shares.byJob[j.id]; s.rank > 0 {
		fraction = s.fraction
	} else if len(c.shares.byJob) == 0 {
		fraction = 1 / float64(max(others, 1))
	}
	return int(math.Ceil(fraction*float64(c.cfg.Fetches) - 1e-6))
}

// nextForJob returns a job's next fetch, from the host with the fewest running ones. Equal hosts take turns.
func (c *Core) nextForJob(j *job, guaranteed bool) *queue {
	from, _ := slices.BinarySearchFunc(j.queues, j.lastHost, func(q *queue, addr string) int {
		if q.host.addr <= addr {
			return -1
		}
		return 1
	})
	var best *queue
	for i := range j.queues {
		q := j.queues[(from+i)%len(j.queues)]
		if best != nil && q.host.active >= best.host.active || !c.mayFetch(q, guaranteed) || !c.hasNext(q) {
			continue
		}
		if best = q; q.host.active == 0 {
			break
		}
	}
	if best != nil {
		j.lastHost = best.host.addr
	}
	return best
}

// mayFetch reports whether another fetch from a host may start. A host that failed gets
// one fetch at a time, after a pause.
func (c *Core) mayFetch(q *queue, guaranteed bool) bool {
	h := q.host
	if h.failures > 0 {
		return h.active == 0 && h.pausedUntil <= c.now
	}
	if guaranteed {
		return q.active < c.cfg.FetchesPerHost && h.active < shareBurst*c.cfg.FetchesPerHost
	}
	return h.active < c.cfg.FetchesPerHost
}

// hasNext skips maps that no home wants any more, and reports whether others are left.
func (c *Core) hasNext(q *queue) bool {
	for len(q.waiting) > 0 && q.job.wants[q.waiting[0]] == 0 {
		q.skip()
	}
	if len(q.waiting) == 0 {
		c.endedQueues = append(c.endedQueues, q)
	}
	return len(q.waiting) > 0
}

// queue returns the queue of a job for a host, and adds it if it is new.
func (c *Core) queue(h *host, j *job) *queue {
	at, known := slices.BinarySearchFunc(j.queues, h.addr, func(q *queue, addr string) int { return cmp.Compare(q.host.addr, addr) })
	if known {
		return j.queues[at]
	}
	q := &queue{job: j, host: h, last: -1}
	if len(j.queues) == 0 {
		i, _ := slices.BinarySearchFunc(c.queued, j.id, func(x *job, id wire.JobID) int { return x.id.Compare(id) })
		c.queued = slices.Insert(c.queued, i, j)
	}
	j.queues = slices.Insert(j.queues, at, q)
	i, _ := slices.BinarySearchFunc(h.queues, j.id, func(x *queue, id wire.JobID) int { return x.job.id.Compare(id) })
	h.queues = slices.Insert(h.queues, i, q)
	return q
}

// countFetch counts a fetch that starts (by 1) or ends (by -1).
func (c *Core) countFetch(q *queue, by int) {
	q.active += by
	q.host.active += by
	q.job.fetching += by
	c.fetching += by
	if q.active == 0 {
		c.endedQueues = append(c.endedQueues, q)
	}
}

func (h *host) hasWaiting() bool {
	return slices.ContainsFunc(h.queues, func(q *queue) bool { return len(q.waiting) > 0 })
}

// removeUnused removes empty queues and hosts.
func (c *Core) removeUnused() {
	for _, q := range c.endedQueues {
		if q.removed || len(q.waiting) > 0 || q.active > 0 {
			continue
		}
		q.removed = true
		is := func(x *queue) bool { return x == q }
		q.host.queues = slices.DeleteFunc(q.host.queues, is)
		q.job.queues = slices.DeleteFunc(q.job.queues, is)
		if len(q.job.queues) == 0 {
			c.queued = slices.DeleteFunc(c.queued, func(j *job) bool { return j == q.job })
		}
	}
	clear(c.endedQueues)
	c.endedQueues = c.endedQueues[:0]
	c.hosts = slices.DeleteFunc(c.hosts, func(h *host) bool { return len(h.queues) == 0 && h.pausedUntil <= c.now })
}

// rateMeter measures the rate of fetches, in time with running fetches.
type rateMeter struct {
	at    time.Duration
	busy  float64 // seconds with running fetches
	bytes float64 // fetched in these seconds
}

// The rate is measured over about the last meterWindow seconds with fetches, and known
// after minMeterTime such seconds.
const (
	meterWindow  = 20
	minMeterTime = 0.2
)

// advance sets the time.
func (p *rateMeter) advance(now time.Duration, busy bool) {
	if busy {
		p.busy += (now - p.at).Seconds()
	}
	p.at = now
	if p.busy > meterWindow {
		p.busy, p.bytes = p.busy/2, p.bytes/2
	}
}

// rate returns bytes a second. Before there is a measurement it returns the configured
// limit, or 0 without a limit.
func (p *rateMeter) rate(limit float64) float64 {
	switch {
	case p.busy < minMeterTime || p.bytes == 0:
		return limit
	case limit > 0:
		return min(limit, p.bytes/p.busy)
	}
	return p.bytes / p.busy
}
