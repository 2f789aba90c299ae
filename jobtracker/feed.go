package jobtracker

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

const (
	// feedGap is the time in which changes of a job are collected for followers.
	feedGap = time.Second

	// feedJobs is the maximum number of statuses that one pass of Run's loop makes for followers.
	feedJobs = 50
)

// feed tells followers of all changed jobs. It makes one status of a changed job for all followers, and none
// while there are no followers. Followers read a list that only grows at its end, each at its own pace; what all
// have read is garbage.
type feed struct {
	mu        sync.Mutex
	followers int
	changed   map[wire.JobID]struct{} // not nil: there are followers
	wake      chan struct{}           // has a value if changed has
	tail      *news
	stop      context.CancelFunc // ends the goroutine that fills the list
}

// news is an element of a feed's list. It never changes after ready is closed.
type news struct {
	ready chan struct{} // closed when the other fields are set
	jobs  []core.Listed
	err   error // the list ends
	next  *news
}

func newNews() *news { return &news{ready: make(chan struct{})} }

// note takes the jobs that a Step has changed.
func (f *feed) note(ids []wire.JobID) {
	if len(ids) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		return
	}
	for _, id := range ids {
		f.changed[id] = struct{}{}
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the changed jobs by id, and forgets them. ctx is that of fill.
func (f *feed) take(ctx context.Context) []wire.JobID {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil // another fill takes them
	}
	ids := slices.SortedFunc(maps.Keys(f.changed), wire.JobID.Compare)
	clear(f.changed)
	return ids
}

// join adds a follower, and returns the place of its first news. The first follower starts fill.
func (f *feed) join(fill func(ctx context.Context, wake <-chan struct{})) *news {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers++; f.followers == 1 {
		var ctx context.Context
		ctx, f.stop = context.WithCancel(context.Background())
		f.changed, f.wake, f.tail = make(map[wire.JobID]struct{}), make(chan struct{}, 1), newNews()
		go fill(ctx, f.wake)
	}
	return f.tail
}

// leave removes a follower. The last one ends fill.
func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers--; f.followers == 0 {
		f.stop()
		f.changed = nil
	}
}

// add adds news. ctx is that of fill: a fill that has ended adds none to the list of the next one.
func (f *feed) add(ctx context.Context, jobs []core.Listed, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	n := f.tail
	n.jobs, n.err, n.next = jobs, err, newNews()
	f.tail = n.next
	close(n.ready)
}

// Follow returns all jobs that change from now on until ctx ends, at most every second, in the order of their
// ids. It ends with an error: core.ErrNotLeader if another job tracker leads. Clients share what the statuses
// contain: it must not be changed. The caller must end ctx.
func (s *Server) Follow(ctx context.Context) iter.Seq2[[]core.Listed, error] {
	at := s.feed.join(s.fillFeed)
	context.AfterFunc(ctx, s.feed.leave)
	return func(yield func([]core.Listed, error) bool) {
		for ; ; at = at.next {
			select {
			case <-at.ready:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-s.done:
				yield(nil, ErrStopped)
				return
			}
			if at.err != nil {
				yield(nil, at.err)
				return
			}
			if !yield(at.jobs, nil) {
				return
			}
		}
	}
}

// fillFeed makes the statuses of changed jobs until ctx ends.
func (s *Server) fillFeed(ctx context.Context, wake <-chan struct{}) {
	gap := time.NewTimer(feedGap)
	defer gap.Stop()
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		case <-s.done:
			return
		}
		gap.Reset(feedGap)
		select {
		case <-gap.C:
		case <-ctx.Done():
			return
		}
		ids := s.feed.take(ctx)
		for len(ids) > 0 && ctx.Err() == nil {
			some := ids[:min(len(ids), feedJobs)]
			ids = ids[len(some):]
			var jobs []core.Listed
			err := s.query(ctx, func() { jobs = s.core.Listed(s.now(), some) })
			if err != nil {
				jobs = nil // Run may still write it
			}
			s.feed.add(ctx, jobs, err)
		}
	}
}
