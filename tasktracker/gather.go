package tasktracker

import (
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

// gather carries out fetches, look-ups and merges.
type gather struct {
	tell     func(core.Event)
	log      *slog.Logger
	stall    time.Duration // see shuffle.FetchOptions
	ration   *ration       // nil: as fast as it goes
	client   *http.Client
	token    func(wire.JobID) string // of a job
	scheme   string                  // of other trackers' services
	wait     sync.WaitGroup
	lookups  *wire.Queue[core.Fetch]
	mu       sync.Mutex
	canceled map[workKey]context.CancelFunc

	// The goroutine of lookUps owns these.
	indexFile string
	index     *shuffle.Index
}

// workKey names a fetch or a merge under way.
type workKey struct{ fetch, merge int }

// fetchStall is how long a fetch may take for the next shuffle.StallBytes.
const fetchStall = 5 * time.Second

func newGather(tell func(core.Event), log *slog.Logger, stall time.Duration, rate float64, config *tls.Config) *gather {
	transport := &http.Transport{
		MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		DisableCompression: true, // it would cost more than it saves on one network
		TLSClientConfig:    config,
	}
	scheme := "http://"
	if config != nil {
		scheme = "https://"
	}
	g := &gather{
		tell: tell, log: log, stall: stall, scheme: scheme, client: &http.Client{Transport: transport},
		lookups: wire.NewQueue[core.Fetch](0), canceled: make(map[workKey]context.CancelFunc),
	}
	if rate > 0 {
		g.ration = newRation(rate)
	}
	return g
}

// begin runs work on its own goroutine until it is done or cancelled.
func (g *gather) begin(ctx context.Context, key workKey, work func(ctx context.Context) core.Event) {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	g.canceled[key] = cancel
	g.mu.Unlock()
	g.wait.Go(func() {
		ev := work(ctx)
		g.cancel(key)
		g.tell(ev)
	})
}

func (g *gather) cancel(key workKey) {
	g.mu.Lock()
	cancel := g.canceled[key]
	delete(g.canceled, key)
	g.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (g *gather) fetch(ctx context.Context, c core.Fetch) {
	if c.InPlace {
		g.lookups.Put(c)
		return
	}
	g.begin(ctx, workKey{fetch: c.Fetch}, func(ctx context.Context) core.Event {
		if err := os.MkdirAll(filepath.Dir(c.File), 0o777); err != nil {
			return core.FetchDone{Fetch: c.Fetch, Error: err.Error(), Local: true}
		}
		url := shuffle.URL(g.scheme+c.Output.Addr, c.Job, c.Output.Map, c.Output.Attempt, c.Partition)
		options := shuffle.FetchOptions{Client: g.client, Stall: g.stall, Token: g.token(c.Job)}
		if g.ration != nil {
			options.Pace = func(ctx context.Context, n int) error { return g.ration.take(ctx, c.Job, n) }
		}
		got, err := shuffle.Fetch(ctx, url, c.File, options)
		if err != nil {
			return fetchFailed(c.Fetch, err)
		}
		g.gathered(c, got.Segment.Length)
		return core.FetchDone{Fetch: c.Fetch, Segment: got.Segment, Records: got.Records}
	})
}

// gathered tells who follows the shuffle closely what a home has.
func (g *gather) gathered(c core.Fetch, bytes int64) {
	g.log.Debug("gathered", "job", c.Job, "map", c.Output.Map, "partition", c.Partition, "bytes", bytes)
}

// share has what comes divided as the leader wishes.
func (g *gather) share(c core.Share) {
	if g.ration != nil {
		g.ration.share(c.Shares)
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

// lookUps looks up where partitions are in map outputs of this tracker, one after
// the other. Look-ups for all partitions of an output tend to follow each other.
func (g *gather) lookUps() {
	for {
		batch := g.lookups.Take()
		if batch == nil {
			return
		}
		for _, c := range batch {
			g.tell(g.lookUp(c))
		}
	}
}

func (g *gather) lookUp(c core.Fetch) core.FetchDone {
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
	g.gathered(c, p.Length)
	return core.FetchDone{
		Fetch: c.Fetch, Records: p.Records,
		Segment: wire.Segment{File: c.File, Offset: p.Offset, Length: p.Length},
	}
}

func (g *gather) merge(ctx context.Context, c core.Merge) {
	g.begin(ctx, workKey{merge: c.Merge}, func(ctx context.Context) core.Event {
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

// stop ends all work; the context of everything begun has ended before.
func (g *gather) stop() {
	g.lookups.Close()
	g.wait.Wait()
	g.client.CloseIdleConnections()
}
