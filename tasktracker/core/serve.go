package core

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// shares are what the leader has said of how jobs are served.
type shares struct {
	of   map[wire.JobID]share
	rest float64 // for the jobs not named, together
}

// share is a job's part.
type share struct {
	rank int     // 1 goes first
	part float64 // of what is fetched at a time
}

// share replaces the shares. In all they are no more than everything.
func (c *Core) share(list []wire.JobShare) {
	c.shares = shares{make(map[wire.JobID]share, len(list)), 1}
	for _, s := range list {
		if _, twice := c.shares.of[s.Job]; !twice && s.Share >= 0 {
			part := min(s.Share, c.shares.rest)
			c.shares.of[s.Job] = share{len(c.shares.of) + 1, part}
			c.shares.rest -= part
		}
	}
	c.do(Share{list})
}

// overtaking is how many times the bounds of fetches may be reached so that jobs
// get their shares while others' fetches, begun before, are under way.
const overtaking = 4

// startFetches begins what may be fetched now: for the jobs that fetch less than
// their share, in the order of precedence, then for any job in that order.
func (c *Core) startFetches() {
	for len(c.queued) > 0 {
		q, e := c.nextFetch()
		if e == nil {
			break
		}
		c.startFetch(q, e)
	}
	c.leaveHosts()
}

func (c *Core) nextFetch() (*queue, *entry) {
	if c.fetching >= overtaking*c.cfg.Fetches {
		return nil, nil
	}
	line, others := c.precedence()
	for _, j := range line {
		if j.fetching < c.entitled(j, others) {
			if q, e := c.nextOf(j, true); e != nil {
				return q, e
			}
		}
	}
	if c.fetching >= c.cfg.Fetches {
		return nil, nil
	}
	for _, j := range line {
		if q, e := c.nextOf(j, false); e != nil {
			return q, e
		}
	}
	return nil, nil
}

// precedence is the jobs with something to fetch, or fetched, as they are served:
// by rank, those not named last and the one that fetches least first. Others is how
// many are not named.
func (c *Core) precedence() (line []*job, others int) {
	rank := func(j *job) int { return cmp.Or(c.shares.of[j.id].rank, math.MaxInt) }
	line = slices.Clone(c.queued)
	slices.SortStableFunc(line, func(a, b *job) int {
		first, second := rank(a), rank(b)
		if first == second {
			return cmp.Compare(a.fetching, b.fetching)
		}
		return cmp.Compare(first, second)
	})
	for _, j := range line {
		if rank(j) == math.MaxInt {
			others++
		}
	}
	return line, others
}

// entitled is how many fetches at a time are a job's, whatever the others do.
func (c *Core) entitled(j *job, others int) int {
	part := c.shares.rest / float64(max(others, 1))
	if s := c.shares.of[j.id]; s.rank > 0 {
		part = s.part
	} else if len(c.shares.of) == 0 {
		part = 1 / float64(max(others, 1))
	}
	return int(math.Ceil(part*float64(c.cfg.Fetches) - 1e-6))
}

// nextOf takes what to fetch next for a job, from its hosts in turn.
func (c *Core) nextOf(j *job, entitled bool) (*queue, *entry) {
	from, _ := slices.BinarySearchFunc(j.queues, j.asked, func(q *queue, addr string) int {
		if q.host.addr <= addr {
			return -1
		}
		return 1
	})
	for i := range j.queues {
		q := j.queues[(from+i)%len(j.queues)]
		if !c.mayAsk(q, entitled) {
			continue
		}
		e := q.next()
		if len(q.places) == 0 {
			c.ended = append(c.ended, q)
		}
		if e != nil {
			j.asked = q.host.addr
			return q, e
		}
	}
	return nil, nil
}

// mayAsk says whether one more fetch from a host may begin. One that has failed is
// asked for one thing at a time, after a while.
func (c *Core) mayAsk(q *queue, entitled bool) bool {
	h := q.host
	if h.failures > 0 {
		return h.active == 0 && h.until <= c.now
	}
	if entitled {
		return q.active < c.cfg.FetchesPerHost && h.active < overtaking*c.cfg.FetchesPerHost
	}
	return h.active < c.cfg.FetchesPerHost
}

// next takes the first entry that still wants its place.
func (q *queue) next() *entry {
	for len(q.places) > 0 {
		p := q.places[0]
		q.places[0] = place{}
		q.places = q.places[1:]
		if !p.void() {
			return p.entry
		}
	}
	return nil
}

// queue finds a job's queue at a host or begins it.
func (c *Core) queue(h *host, j *job) *queue {
	at, known := slices.BinarySearchFunc(j.queues, h.addr, func(q *queue, addr string) int { return cmp.Compare(q.host.addr, addr) })
	if known {
		return j.queues[at]
	}
	q := &queue{job: j, host: h}
	if len(j.queues) == 0 {
		i, _ := slices.BinarySearchFunc(c.queued, j.id, func(x *job, id wire.JobID) int { return x.id.Compare(id) })
		c.queued = slices.Insert(c.queued, i, j)
	}
	j.queues = slices.Insert(j.queues, at, q)
	i, _ := slices.BinarySearchFunc(h.queues, j.id, func(x *queue, id wire.JobID) int { return x.job.id.Compare(id) })
	h.queues = slices.Insert(h.queues, i, q)
	return q
}

// count counts a fetch that begins, or that ends.
func (c *Core) count(q *queue, by int) {
	q.active += by
	q.host.active += by
	q.job.fetching += by
	c.fetching += by
	if q.active == 0 {
		c.ended = append(c.ended, q)
	}
}

func (h *host) waits() bool {
	return slices.ContainsFunc(h.queues, func(q *queue) bool { return len(q.places) > 0 })
}

// leaveHosts forgets queues and hosts that are of no use any more.
func (c *Core) leaveHosts() {
	for _, q := range c.ended {
		if q.gone || len(q.places) > 0 || q.active > 0 {
			continue
		}
		q.gone = true
		is := func(x *queue) bool { return x == q }
		q.host.queues = slices.DeleteFunc(q.host.queues, is)
		q.job.queues = slices.DeleteFunc(q.job.queues, is)
		if len(q.job.queues) == 0 {
			c.queued = slices.DeleteFunc(c.queued, func(j *job) bool { return j == q.job })
		}
	}
	clear(c.ended)
	c.ended = c.ended[:0]
	c.hosts = slices.DeleteFunc(c.hosts, func(h *host) bool { return len(h.queues) == 0 && h.until <= c.now })
}

// pace measures how fast this tracker fetches while it fetches.
type pace struct {
	at    time.Duration
	busy  float64 // seconds with fetches under way
	bytes float64 // that these have brought
}

// The pace is of about the last so many seconds with fetches, and known after the
// first few.
const (
	paceWindow = 20
	paceLeast  = 0.2
)

// pass lets time pass.
func (p *pace) pass(now time.Duration, busy bool) {
	if busy {
		p.busy += (now - p.at).Seconds()
	}
	p.at = now
	if p.busy > paceWindow {
		p.busy, p.bytes = p.busy/2, p.bytes/2
	}
}

// rate is in bytes a second. As long as there is no measure it is the most that
// there can be, 0 if that is not known.
func (p *pace) rate(most float64) float64 {
	switch {
	case p.busy < paceLeast || p.bytes == 0:
		return most
	case most > 0:
		return min(most, p.bytes/p.busy)
	}
	return p.bytes / p.busy
}
