// Package gather brings together what the partitions that are at home on this machine
// need: it fetches map outputs from other trackers, looks up where partitions are in
// the tracker's own, and merges. tasktracker/core decides which of that happens, and
// when; this package does it and tells how it ended, in events of the core.
//
// # Rate
//
// With Config.Rate all fetches together are held to a rate. Whose bytes come
// next is for the leader to say (wire.Shares), down to the single read: a fetch of a
// job that has had its share stands still, its connection given back if that is long,
// while another's that began later goes on.
//
// # Invariants
//
//	G1  Each fetch and each merge that began ends in one event, cancelled or not.
//	G2  What failed is told with whose fault it is: the segment (Corrupt), a map output
//	    that is not there (Gone), a peer that stands still (Stalled), or a local disk (Local).
//
// # Concurrency
//
// Every fetch and merge has a goroutine; one more does all look-ups in order. All
// methods may be called by any goroutine and do not wait, except for Stop and LookUps.
package gather

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Config says what fetches need.
type Config struct {
	Tell  func(core.Event)        // is told how each one ended
	Token func(wire.JobID) string // of a job, that other trackers ask for
	Stall time.Duration           // how long a fetch may take for the next shuffle.StallBytes; 0: 5 s
	Rate  float64                 // bytes a second of all fetches together; 0: as fast as it goes
	Dial  *tls.Config             // nil: other trackers' services are not protected
	Log   *slog.Logger
}

// Gather carries out fetches, look-ups and merges. Make one with [New].
type Gather struct {
	cfg      Config
	limiter  *rateLimiter // nil: as fast as it goes
	client   *http.Client
	scheme   string // of other trackers' services
	wait     sync.WaitGroup
	lookups  *wire.Queue[core.Fetch]
	mu       sync.Mutex
	canceled map[workKey]context.CancelFunc

	// The goroutine of LookUps owns these.
	indexFile string
	index     *shuffle.Index
}

// workKey names a fetch or a merge under way.
type workKey struct{ fetch, merge int }

// defaultStall is how long a fetch may take for the next shuffle.StallBytes.
const defaultStall = 5 * time.Second

// New makes a Gather. Its look-ups wait until LookUps runs.
func New(cfg Config) *Gather {
	cfg.Stall = cmp.Or(cfg.Stall, defaultStall)
	transport := &http.Transport{
		MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		DisableCompression: true, // it would cost more than it saves on one network
		TLSClientConfig:    cfg.Dial,
	}
	scheme := "http://"
	if cfg.Dial != nil {
		scheme = "https://"
	}
	g := &Gather{
		cfg: cfg, scheme: scheme, client: &http.Client{Transport: transport},
		lookups: wire.NewQueue[core.Fetch](0), canceled: make(map[workKey]context.CancelFunc),
	}
	if cfg.Rate > 0 {
		g.limiter = newRateLimiter(cfg.Rate)
	}
	return g
}

// begin runs work on its own goroutine until it is done or cancelled.
func (g *Gather) start(ctx context.Context, key workKey, work func(ctx context.Context) core.Event) {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	g.canceled[key] = cancel
	g.mu.Unlock()
	g.wait.Go(func() {
		ev := work(ctx)
		g.cancel(key)
		g.cfg.Tell(ev)
	})
}

func (g *Gather) cancel(key workKey) {
	g.mu.Lock()
	cancel := g.canceled[key]
	delete(g.canceled, key)
	g.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// CancelFetch ends a fetch, which is told as an error.
func (g *Gather) CancelFetch(fetch int) { g.cancel(workKey{fetch: fetch}) }

// CancelMerge ends a merge, which is told as an error.
func (g *Gather) CancelMerge(merge int) { g.cancel(workKey{merge: merge}) }

// Fetch begins a fetch, or a look-up of what is on this machine.
func (g *Gather) Fetch(ctx context.Context, c core.Fetch) {
	if c.InPlace {
		g.lookups.Put(c)
		return
	}
	g.start(ctx, workKey{fetch: c.Fetch}, func(ctx context.Context) core.Event {
		if err := os.MkdirAll(filepath.Dir(c.File), 0o777); err != nil {
			return core.FetchDone{Fetch: c.Fetch, Error: err.Error(), Local: true}
		}
		url := shuffle.URL(g.scheme+c.Output.Addr, c.Job, c.Output.Map, c.Output.Attempt, c.Partition)
		options := shuffle.FetchOptions{Client: g.client, Stall: g.cfg.Stall, Token: g.cfg.Token(c.Job)}
		if g.limiter != nil {
			options.Pace = func(ctx context.Context, n int) error { return g.limiter.wait(ctx, c.Job, n) }
		}
		got, err := shuffle.Fetch(ctx, url, c.File, options)
		if err != nil {
			return fetchFailed(c.Fetch, err)
		}
		g.logGathered(c, got.Segment.Length)
		return core.FetchDone{Fetch: c.Fetch, Segment: got.Segment, Records: got.Records}
	})
}

// gathered tells who follows the shuffle closely what a home has.
func (g *Gather) logGathered(c core.Fetch, bytes int64) {
	g.cfg.Log.Debug("gathered", "job", c.Job, "map", c.Output.Map, "partition", c.Partition, "bytes", bytes)
}

// Share has what comes divided as the leader wishes.
func (g *Gather) Share(c core.Share) {
	if g.limiter != nil {
		g.limiter.share(c.Shares)
	}
}

// fetchFailed tells a fetch that failed from a local file that could not be written.
func fetchFailed(id int, err error) core.FetchDone {
	_, corrupt := errors.AsType[*shuffle.CorruptError](err)
	_, unreadable := errors.AsType[*shuffle.UnreadableError](err)
	return core.FetchDone{
		Fetch: id, Error: err.Error(), Corrupt: corrupt, Gone: unreadable && errors.Is(err, fs.ErrNotExist),
		Stalled: errors.Is(err, shuffle.ErrStalled), Local: !corrupt && !unreadable && !errors.Is(err, context.Canceled),
	}
}

// lookUpFailed does so for a file of this tracker.
func lookUpFailed(id int, err error) core.FetchDone {
	_, corrupt := errors.AsType[*shuffle.CorruptError](err)
	gone := errors.Is(err, fs.ErrNotExist)
	return core.FetchDone{Fetch: id, Error: err.Error(), Corrupt: corrupt, Gone: gone, Local: !corrupt && !gone}
}

// LookUps looks up where partitions are in map outputs of this tracker, one after
// the other. Look-ups for all partitions of an output tend to follow each other.
// It returns after Stop.
func (g *Gather) LookUps() {
	for c := range g.lookups.All() {
		g.cfg.Tell(g.lookUp(c))
	}
}

func (g *Gather) lookUp(c core.Fetch) core.FetchDone {
	if g.indexFile != c.File {
		index, err := shuffle.ReadIndex(c.File)
		if err != nil {
			return lookUpFailed(c.Fetch, err)
		}
		g.indexFile, g.index = c.File, index
	}
	if c.Partition >= len(g.index.Partitions) {
		return core.FetchDone{Fetch: c.Fetch, Corrupt: true, Error: c.File + " has too few partitions"}
	}
	p := g.index.Partitions[c.Partition]
	g.logGathered(c, p.Length)
	return core.FetchDone{
		Fetch: c.Fetch, Records: p.Records,
		Segment: wire.Segment{File: c.File, Offset: p.Offset, Length: p.Length},
	}
}

// Merge begins to merge runs into one.
func (g *Gather) Merge(ctx context.Context, c core.Merge) {
	g.start(ctx, workKey{merge: c.Merge}, func(ctx context.Context) core.Event {
		dir := filepath.Dir(c.File)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return core.MergeDone{Merge: c.Merge, Error: err.Error(), Local: true}
		}
		segment, err := shuffle.MergeTo(ctx, c.Runs, c.File, shuffle.MergeOptions{Dir: dir, FanIn: len(c.Runs)})
		if err != nil {
			ev := core.MergeDone{Merge: c.Merge, Error: err.Error(), Local: ctx.Err() == nil}
			if damaged, ok := errors.AsType[*shuffle.CorruptError](err); ok {
				ev.Corrupt, ev.Local = &damaged.Segment, false
			}
			return ev
		}
		return core.MergeDone{Merge: c.Merge, Segment: segment}
	})
}

// Stop ends all work; the context of everything begun has ended before.
func (g *Gather) Stop() {
	g.lookups.Close()
	g.wait.Wait()
	g.client.CloseIdleConnections()
}
