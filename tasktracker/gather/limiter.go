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

// rateLimiter limits the rate of all fetches together, as a token bucket. Waiting fetches
// continue in this order: first jobs within their share, by rank; then jobs without a
// share, by bytes received; then jobs beyond their share, by rank.
type rateLimiter struct {
	rate  float64 // bytes a second
	depth float64 // capacity of the bucket in bytes

	mu           sync.Mutex
	filledAt     time.Time // time of the last fill
	available    float64   // bytes; negative after a large read
	shared       map[wire.JobID]*bucket
	received     map[wire.JobID]float64 // bytes received by jobs without a share; see wait
	lastReceived float64                // received bytes of the last such job that continued
	queue        []*waiter
	timer        *time.Timer
}

// bucket has the bytes that a job may read within its share.
type bucket struct {
	rank      int
	share     float64 // of the rate
	available float64
}

// waiter is a waiting fetch.
type waiter struct {
	job      wire.JobID
	bytes    int
	released chan struct{} // closed when it may continue
}

// burstTime is the time after which an unused bucket is full. It is short, so that new
// fetches do not wait for long bursts of other jobs.
const burstTime = 100 * time.Millisecond

// maxJobs limits the jobs in received.
const maxJobs = 1000

func newRateLimiter(rate float64) *rateLimiter {
	depth := rate * burstTime.Seconds()
	return &rateLimiter{rate: rate, depth: depth, available: depth, filledAt: time.Now(), received: make(map[wire.JobID]float64)}
}

// share replaces the shares. A job that already had a share keeps its available bytes.
func (r *rateLimiter) share(list []wire.JobShare) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	shared := make(map[wire.JobID]*bucket, len(list))
	for i, s := range list {
		if shared[s.Job] != nil {
			continue
		}
		b := &bucket{rank: i, share: min(max(s.Share, 0), 1)}
		b.available = r.depth * b.share
		if old := r.shared[s.Job]; old != nil {
			b.available = min(b.available, old.available)
		}
		shared[s.Job] = b
	}
	r.shared = shared
	r.release()
}

// wait blocks a fetch of a job, after it has read some bytes, until it may continue.
func (r *rateLimiter) wait(ctx context.Context, job wire.JobID, bytes int) error {
	t := &waiter{job, bytes, make(chan struct{})}
	r.mu.Lock()
	if len(r.received) > maxJobs {
		clear(r.received)
	}
	r.received[job] = max(r.received[job], r.lastReceived) // so a new job is not preferred until it has as many bytes
	r.queue = append(r.queue, t)
	r.release()
	r.mu.Unlock()
	select {
	case <-t.released:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = slices.DeleteFunc(r.queue, func(x *waiter) bool { return x == t })
	return context.Cause(ctx)
}

// release releases the fetches that may continue, and sets a timer for the next one.
func (r *rateLimiter) release() {
	r.fill()
	for r.available > 0 && len(r.queue) > 0 {
		i := r.next()
		r.charge(r.queue[i])
		close(r.queue[i].released)
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	if len(r.queue) == 0 {
		return
	}
	wait := time.Duration(math.Ceil((1 - r.available) / r.rate * float64(time.Second)))
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, r.releaseLater)
	} else {
		r.timer.Reset(wait)
	}
}

func (r *rateLimiter) releaseLater() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release()
}

// fill adds the bytes since the last call to the buckets.
func (r *rateLimiter) fill() {
	now := time.Now()
	added := now.Sub(r.filledAt).Seconds() * r.rate
	r.filledAt = now
	r.available = min(r.available+added, r.depth)
	for _, b := range r.shared {
		b.available = min(b.available+added*b.share, r.depth*b.share)
	}
}

// next returns the index in the queue of the fetch that continues next.
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
	case x == withoutShare:
		return cmp.Or(cmp.Compare(r.received[a], r.received[b]), a.Compare(b)) < 0
	default:
		return r.shared[a].rank < r.shared[b].rank
	}
}

// Classes of jobs, in the order in which they continue.
const (
	withinShare = iota
	withoutShare
	beyondShare
)

func (r *rateLimiter) class(job wire.JobID) int {
	b := r.shared[job]
	switch {
	case b == nil:
		return withoutShare
	case b.available > 0:
		return withinShare
	default:
		return beyondShare
	}
}

func (r *rateLimiter) charge(t *waiter) {
	n := float64(t.bytes)
	r.available -= n
	switch r.class(t.job) {
	case withinShare:
		r.shared[t.job].available -= n
	case withoutShare:
		r.lastReceived = r.received[t.job]
		r.received[t.job] += n
	}
}
