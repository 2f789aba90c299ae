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
type ration struct {
	rate  float64 // bytes a second
	depth float64 // of the bucket

	mu    sync.Mutex
	at    time.Time // of the amounts
	left  float64   // in the bucket; below 0 when more was taken than there was
	named map[wire.JobID]*bucket
	had   map[wire.JobID]float64 // bytes, of the others; see take
	least float64                // of those served last
	line  []*taker
	timer *time.Timer
}

// bucket is a named job's own bucket.
type bucket struct {
	rank int
	part float64 // of the rate
	left float64
}

// taker is a fetch that waits.
type taker struct {
	job    wire.JobID
	bytes  int
	served chan struct{} // closed when it need not wait
}

// rationDepth is for how long a bucket that is not taken from fills: small, so that
// who comes does not wait for others' long bursts.
const rationDepth = 100 * time.Millisecond

// manyJobs is of how many jobs it is remembered what they have had.
const manyJobs = 1000

func newRation(rate float64) *ration {
	depth := rate * rationDepth.Seconds()
	return &ration{rate: rate, depth: depth, left: depth, at: time.Now(), had: make(map[wire.JobID]float64)}
}

// share replaces the shares. A job that had one keeps what it has saved.
func (r *ration) share(list []wire.JobShare) {
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
func (r *ration) take(ctx context.Context, job wire.JobID, bytes int) error {
	t := &taker{job, bytes, make(chan struct{})}
	r.mu.Lock()
	if len(r.had) > manyJobs {
		clear(r.had)
	}
	r.had[job] = max(r.had[job], r.least) // who comes has no claim to what it did not ask for
	r.line = append(r.line, t)
	r.serve()
	r.mu.Unlock()
	select {
	case <-t.served:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line = slices.DeleteFunc(r.line, func(x *taker) bool { return x == t })
	return context.Cause(ctx)
}

// serve lets go on who may, and comes again when the next one may.
func (r *ration) serve() {
	r.fill()
	for r.left > 0 && len(r.line) > 0 {
		i := r.next()
		r.charge(r.line[i])
		close(r.line[i].served)
		r.line = slices.Delete(r.line, i, i+1)
	}
	if len(r.line) == 0 {
		return
	}
	wait := time.Duration(math.Ceil((1 - r.left) / r.rate * float64(time.Second)))
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, r.again)
	} else {
		r.timer.Reset(wait)
	}
}

func (r *ration) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve()
}

// fill lets flow in what has come since.
func (r *ration) fill() {
	now := time.Now()
	came := now.Sub(r.at).Seconds() * r.rate
	r.at = now
	r.left = min(r.left+came, r.depth)
	for _, b := range r.named {
		b.left = min(b.left+came*b.part, r.depth*b.part)
	}
}

// next is the place in the line of who goes next; of one job, the first.
func (r *ration) next() int {
	best := 0
	for i := 1; i < len(r.line); i++ {
		if r.before(r.line[i].job, r.line[best].job) {
			best = i
		}
	}
	return best
}

func (r *ration) before(a, b wire.JobID) bool {
	if a == b {
		return false
	}
	x, y := r.class(a), r.class(b)
	switch {
	case x != y:
		return x < y
	case x == unnamed:
		return cmp.Or(cmp.Compare(r.had[a], r.had[b]), a.Compare(b)) < 0
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

func (r *ration) class(job wire.JobID) int {
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

func (r *ration) charge(t *taker) {
	n := float64(t.bytes)
	r.left -= n
	switch r.class(t.job) {
	case withinShare:
		r.named[t.job].left -= n
	case unnamed:
		r.least = r.had[t.job]
		r.had[t.job] += n
	}
}
