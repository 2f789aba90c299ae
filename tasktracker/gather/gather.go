// Package gather fetches map outputs from other trackers for this tracker's homes, alone or in
// batches, looks up partitions in the tracker's own map outputs, and merges runs. tasktracker/core decides
// what to fetch or merge, and when. This package reports the ends as events of the core.
//
// # Rate
//
// Config.Rate limits all fetches together. Before every read, the leader's shares
// (wire.Shares) decide which fetch continues. A fetch of a job that has used its share
// pauses, while newer fetches of other jobs continue. In a long pause it closes its
// connection.
//
// # Network
//
// Attempts of maps get the rate of the network: Config.Rate, or what fetches have measured if that is less. It is the
// most of the last 16 windows of 4 MiB. The time of a window is that in which each open response waits for bytes.
//
// # Invariants
//
//	G1  Each fetch, batch and merge ends in one event, even if it was cancelled.
//	G2  The event of a failure names its cause: a corrupt segment (Corrupt), a missing map
//	    output (Missing), a stalled peer (Stalled), a local disk (DiskFailed), or the
//	    machine's lack of file descriptors or memory (Exhausted).
//	G3  A batch holds at most one answer in memory (shuffle.BatchBytes).
//
// # Concurrency
//
// Every fetch and merge has a goroutine; another one does all look-ups in order. Any
// goroutine may call any method. Only Stop and LookUps block.
package gather

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Config configures a Gather.
type Config struct {
	OnEvent func(core.Event)        // gets the end of each fetch and merge
	Token   func(wire.JobID) string // returns the token of a job, for requests to other trackers
	Stall   time.Duration           // longest time for the next shuffle.StallBytes of a fetch; 0: 5 s
	Rate    float64                 // limit of all fetches together in bytes a second; 0: none
	Dial    *tls.Config             // nil: other trackers serve without TLS
	Log     *slog.Logger
}

// Gather carries out fetches, look-ups and merges. Make one with [New].
type Gather struct {
	cfg     Config
	limiter *rateLimiter // nil: no limit
	client  *http.Client
	network *network // what client measures
	scheme  string   // of other trackers' URLs
	wait    sync.WaitGroup
	lookups *wire.Queue[core.Fetch]
	counts  *Counts
	warned  atomic.Int64 // Unix time of the last warning of exhausted
	mu      sync.Mutex
	cancels map[workKey]context.CancelFunc

	// The goroutine of LookUps owns these.
	indexFile string
	index     *shuffle.Index
}

// workKey identifies a running fetch or merge.
type workKey struct{ fetch, merge int }

// defaultStall is the default of Config.Stall.
const defaultStall = 5 * time.Second

// New returns a Gather. Look-ups wait until LookUps runs.
func New(cfg Config) *Gather {
	cfg.Stall = cmp.Or(cfg.Stall, defaultStall)
	transport := &http.Transport{
		MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		DisableCompression: true, // it costs more than it saves within a network
	}
	scheme := "http://"
	if cfg.Dial != nil {
		scheme = "https://"
		identity.Secure(transport, cfg.Dial)
	}
	network := newNetwork(cfg.Rate, transport)
	g := &Gather{
		cfg: cfg, scheme: scheme, client: &http.Client{Transport: network}, network: network,
		lookups: wire.NewQueue[core.Fetch](0), cancels: make(map[workKey]context.CancelFunc), counts: newCounts(),
	}
	if cfg.Rate > 0 {
		g.limiter = newRateLimiter(cfg.Rate)
	}
	return g
}

// start runs work on its own goroutine until it ends or is cancelled.
func (g *Gather) start(ctx context.Context, key workKey, work func(ctx context.Context) core.Event) {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	g.cancels[key] = cancel
	g.mu.Unlock()
	g.wait.Go(func() {
		ev := work(ctx)
		g.cancel(key)
		g.cfg.OnEvent(ev)
	})
}

func (g *Gather) cancel(key workKey) {
	g.mu.Lock()
	cancel := g.cancels[key]
	delete(g.cancels, key)
	g.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// CancelFetch ends a fetch, with an error in its event.
func (g *Gather) CancelFetch(fetch int) { g.cancel(workKey{fetch: fetch}) }

// CancelMerge ends a merge, with an error in its event.
func (g *Gather) CancelMerge(merge int) { g.cancel(workKey{merge: merge}) }

// Fetch starts a fetch, or a look-up in a map output of this tracker.
func (g *Gather) Fetch(ctx context.Context, c core.Fetch) {
	if c.InPlace {
		g.lookups.Put(c)
		return
	}
	g.start(ctx, workKey{fetch: c.Fetch}, func(ctx context.Context) core.Event {
		began := time.Now()
		ev := g.fetch(ctx, c)
		g.counts.add(&ev, ctx.Err() != nil, time.Since(began))
		return ev
	})
}

// fetch fetches a partition of a map output of another tracker.
func (g *Gather) fetch(ctx context.Context, c core.Fetch) core.FetchDone {
	if err := makeHome(c.File); err != nil {
		return g.fetchFailed(c.Fetch, err)
	}
	url := shuffle.URL(g.scheme+c.Output.Addr, c.Job, c.Output.Map, c.Output.Attempt, c.Partition)
	got, err := shuffle.Fetch(ctx, url, c.File, g.options(c.Job))
	if err != nil {
		return g.fetchFailed(c.Fetch, err)
	}
	g.logGathered(c, got.Segment.Length)
	return core.FetchDone{Fetch: c.Fetch, Segment: got.Segment, Records: got.Records}
}

// options returns the options of fetches for a job.
func (g *Gather) options(job wire.JobID) shuffle.FetchOptions {
	options := shuffle.FetchOptions{Client: g.client, Stall: g.cfg.Stall, Token: g.cfg.Token(job)}
	if g.limiter != nil {
		options.Pace = func(ctx context.Context, n int) error { return g.limiter.wait(ctx, job, n) }
	}
	return options
}

// makeHome makes the directory of a file of a home, in the job's directory.
func makeHome(file string) error {
	dir := filepath.Dir(file)
	return shuffle.MakeDir(filepath.Dir(dir), filepath.Base(dir))
}

// logGathered logs a fetched output, for debugging.
func (g *Gather) logGathered(c core.Fetch, bytes int64) {
	g.cfg.Log.Debug("gathered", "job", c.Job, "map", c.Output.Map, "partition", c.Partition, "bytes", bytes)
}

// Network returns what is known of the network, for attempts of maps. nil: neither a limit nor a measurement.
func (g *Gather) Network() *wire.Network { return g.network.get() }

// Share sets the jobs' shares of the rate.
func (g *Gather) Share(c core.Share) {
	if g.limiter != nil {
		g.limiter.share(c.Shares)
	}
}

// exhausted reports whether this machine is [shuffle.Exhausted], and logs it once a minute.
func (g *Gather) exhausted(err error) bool {
	if !shuffle.Exhausted(err) {
		return false
	}
	if last, now := g.warned.Load(), time.Now().Unix(); now-last >= 60 && g.warned.CompareAndSwap(last, now) {
		g.cfg.Log.Warn("no file descriptor or memory is left: gathering map outputs waits", "error", err)
	}
	return true
}

// fetchFailed returns the event of a failed fetch, with its cause.
func (g *Gather) fetchFailed(id int, err error) core.FetchDone {
	_, corrupt := errors.AsType[*shuffle.CorruptError](err)
	_, unreadable := errors.AsType[*shuffle.UnreadableError](err)
	exhausted := g.exhausted(err)
	return core.FetchDone{
		Fetch: id, Error: err.Error(), Corrupt: corrupt, Missing: unreadable && errors.Is(err, fs.ErrNotExist), Exhausted: exhausted,
		Stalled: errors.Is(err, shuffle.ErrStalled), DiskFailed: !corrupt && !unreadable && !exhausted && !errors.Is(err, context.Canceled),
	}
}

// lookUpFailed returns the event of a failed look-up, with its cause.
func (g *Gather) lookUpFailed(id int, err error) core.FetchDone {
	_, corrupt := errors.AsType[*shuffle.CorruptError](err)
	missing, exhausted := errors.Is(err, fs.ErrNotExist), g.exhausted(err)
	return core.FetchDone{Fetch: id, Error: err.Error(), Corrupt: corrupt, Missing: missing, Exhausted: exhausted, DiskFailed: !corrupt && !missing && !exhausted}
}

// LookUps does look-ups in map outputs of this tracker, one after the other, until Stop. It
// keeps the last index, because consecutive look-ups are often in the same output.
func (g *Gather) LookUps() {
	for c := range g.lookups.All() {
		g.cfg.OnEvent(g.lookUp(c))
	}
}

func (g *Gather) lookUp(c core.Fetch) core.FetchDone {
	if g.indexFile != c.File {
		index, err := shuffle.ReadIndex(c.File)
		if err != nil {
			return g.lookUpFailed(c.Fetch, err)
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

// Merge starts to merge runs into one.
func (g *Gather) Merge(ctx context.Context, c core.Merge) {
	g.start(ctx, workKey{merge: c.Merge}, func(ctx context.Context) core.Event {
		if err := makeHome(c.File); err != nil {
			return core.MergeDone{Merge: c.Merge, Error: err.Error(), DiskFailed: !g.exhausted(err)}
		}
		largest := shuffle.NewLargest(wire.MaxHotGroups, wire.MinHotBytes)
		segment, err := shuffle.MergeTo(ctx, c.Runs, c.File, shuffle.MergeOptions{Dir: filepath.Dir(c.File), FanIn: len(c.Runs)}, &largest)
		if err != nil {
			ev := core.MergeDone{Merge: c.Merge, Error: err.Error(), DiskFailed: ctx.Err() == nil && !g.exhausted(err)}
			if corrupt, ok := errors.AsType[*shuffle.CorruptError](err); ok {
				ev.Corrupt, ev.DiskFailed = &corrupt.Segment, false
			}
			return ev
		}
		return core.MergeDone{Merge: c.Merge, Segment: segment, Hot: hotOf(&largest)}
	})
}

// hotOf returns the large groups of merged records. A task tracker does not know the types of keys.
func hotOf(largest *shuffle.Largest) *wire.Hot {
	hot := &wire.Hot{Read: largest.Read()}
	for _, g := range largest.Groups() {
		hot.Groups = append(hot.Groups, wire.HotGroup{Key: string(g.Key[:min(len(g.Key), wire.MaxHotKey)]), Raw: true, Records: g.Records, Bytes: g.Bytes})
	}
	return hot
}

// Stop waits for the end of all work. Call it after the contexts of all work have ended.
func (g *Gather) Stop() {
	g.lookups.Close()
	g.wait.Wait()
	g.client.CloseIdleConnections()
}
