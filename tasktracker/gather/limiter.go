package gather

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/wire"
)

// ration holds all fetches together to a rate, as a bucket into which so many bytes
// a second flow. Who waits is served as core.Share says: first the jobs that are named
// and have had less than their share, in their order; then those not named, the one that
// has had least; then those named once more.
type rateLimiter struct {
	rate  float64 // bytes a second
	depth float64 // of the bucket

	mu           sync.Mutex
	at           time.Time // of the amounts
	left         float64   // in the bucket; below 0 when more was taken than there was
	named        map[wire.JobID]*bucket
	received     map[wire.JobID]float64 // bytes, of the others; see take
	lastReceived float64                // of those served last
	queue        []*waiter
	timer        *time.Timer
}

// bucket is a named job's own bucket.
type bucket struct {
	rank int
	part float64 // of the rate
	left float64
}

// taker is a fetch that waits.
type waiter struct {
	job    wire.JobID
	bytes  int
	served chan struct{} // closed when it need not wait
}

// rationDepth is for how long a bucket that is not taken from fills: small, so that
// who comes does not wait for others' long bursts.
const burstTime = 100 * time.Millisecond

// manyJobs is of how many jobs it is remembered what they have had.
const maxJobs = 1000

func newRateLimiter(rate float64) *rateLimiter {
	depth := rate * burstTime.Seconds()
	return &rateLimiter{rate: rate, depth: depth, left: depth, at: time.Now(), received: make(map[wire.JobID]float64)}
}

// share replaces the shares. A job that had one keeps what it has saved.
func (r *rateLimiter) share(list []wire.JobShare) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	named := make(map[wire.JobID]*bucket, len(list))
	for i, s := range list {
		if named[s.Job] != nil {
			continue
		}
		b := &bucket{rank: i, part: min(max(s.Share, 0), 1)}
		b.left = r.depth * b.part
		if old := r.named[s.Job]; old != nil {
			b.left = min(b.left, old.left)
		}
		named[s.Job] = b
	}
	r.named = named
	r.serve()
}

// take waits until a job's fetch that has read some bytes may go on.
func (r *rateLimiter) wait(ctx context.Context, job wire.JobID, bytes int) error {
	t := &waiter{job, bytes, make(chan struct{})}
	r.mu.Lock()
	if len(r.received) > maxJobs {
		clear(r.received)
	}
	r.received[job] = max(r.received[job], r.lastReceived) // who comes has no claim to what it did not ask for
	r.queue = append(r.queue, t)
	r.serve()
	r.mu.Unlock()
	select {
	case <-t.served:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = slices.DeleteFunc(r.queue, func(x *waiter) bool { return x == t })
	return context.Cause(ctx)
}

// serve lets go on who may, and comes again when the next one may.
func (r *rateLimiter) serve() {
	r.fill()
	for r.left > 0 && len(r.queue) > 0 {
		i := r.next()
		r.charge(r.queue[i])
		close(r.queue[i].served)
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	if len(r.queue) == 0 {
		return
	}
	wait := time.Duration(math.Ceil((1 - r.left) / r.rate * float64(time.Second)))
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, r.again)
	} else {
		r.timer.Reset(wait)
	}
}

func (r *rateLimiter) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve()
}

// fill lets flow in what has come since.
func (r *rateLimiter) fill() {
	now := time.Now()
	came := now.Sub(r.at).Seconds() * r.rate
	r.at = now
	r.left = min(r.left+came, r.depth)
	for _, b := range r.named {
		b.left = min(b.left+came*b.part, r.depth*b.part)
	}
}

// next is the place in the line of who goes next; of one job, the first.
func (r *rateLimiter) next() int {
	best := 0
	for i := 1; i < len(r.queue); i++ {
		if r.before(r.queue[i].job, r.queue[best].job) {
			best = i
		}
	}
	return best
}

func (r *rateLimiter) before(a, b wire.JobID) bool {
	if a == b {
		return false
	}
	x, y := r.class(a), r.class(b)
	switch {
	case x != y:
		return x < y
	case x == unnamed:
		return cmp.Or(cmp.Compare(r.received[a], r.received[b]), a.Compare(b)) < 0
	default:
		return r.named[a].rank < r.named[b].rank
	}
}

// Whom to serve, in this order.
const (
	withinShare = iota
	unnamed
	beyondShare
)

func (r *rateLimiter) class(job wire.JobID) int {
	b := r.named[job]
	switch {
	case b == nil:
		return unnamed
	case b.left > 0:
		return withinShare
	default:
		return beyondShare
	}
}

func (r *rateLimiter) charge(t *waiter) {
	n := float64(t.bytes)
	r.left -= n
	switch r.class(t.job) {
	case withinShare:
		r.named[t.job].left -= n
	case unnamed:
		r.lastReceived = r.received[t.job]
		r.received[t.job] += n
	}
}
