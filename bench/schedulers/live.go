package schedulers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// The live cluster: a job tracker with a log in memory, and trackers, each with its own
// connection, all in this process.
const (
	liveTrackers = 1000
	liveSlots    = 2
	liveTask     = 500 * time.Millisecond
	liveWaves    = 40 // of all slots, for all jobs together
	liveStaging  = "mem://live/staging"
	replicas     = 3
)

// live measures how long a slot is free: from the tracker's report of an attempt's end until it
// receives the next launch.
func (b *bench) live() error {
	testbed.Table("scheduler", "tasks", "a second", "slot freed → next task received: p50", "p99", "worst", "target", "time of a plan: p50", "p99")
	for _, name := range []string{"fifo", "flex"} {
		if err := b.liveUnder(name); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) liveUnder(name string) error {
	ctx, cancel := context.WithTimeout(b.Ctx, runWait)
	defer cancel()
	l := newLiveCluster(b.Seed, name)
	addr, err := l.serve(ctx)
	if err != nil {
		return err
	}
	defer l.stop()
	began := time.Now()
	if err := l.attachAll(ctx, addr); err != nil {
		return err
	}
	err = testbed.Await(ctx, runWait, "end of all maps", func() bool { return l.endedMaps() == l.total })
	took := time.Since(began)
	l.stop()
	if err != nil {
		return err
	}
	slices.Sort(l.waits)
	slices.Sort(l.planTimes)
	target := "–"
	if name == "flex" {
		target = "p99 ≤ 20 ms"
	}
	testbed.Row(name, fmt.Sprint(l.total), fmt.Sprintf("%.0f", float64(l.total)/took.Seconds()),
		millis(quantile(l.waits, 0.5)), millis(quantile(l.waits, 0.99)), millis(quantile(l.waits, 1)), target,
		millis(quantile(l.planTimes, 0.5)), millis(quantile(l.planTimes, 0.99)))
	return nil
}

// attachAll attaches the trackers one by one over the length of a task, so that later tasks do
// not all end at the same time. The first tracker runs the setup attempts.
func (l *liveCluster) attachAll(ctx context.Context, addr string) error {
	if err := l.attach(ctx, addr, 0); err != nil {
		return err
	}
	for i := range l.maps {
		key := fmt.Sprintf("live%d", i)
		sub := wire.Submission{Key: key, Staging: dfs.Join(liveStaging, key), Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: key, Reduces: 1}}}}
		if _, err := l.server.Submit(ctx, core.Caller{}, sub); err != nil {
			return err
		}
	}
	pace := time.NewTicker(liveTask / liveTrackers)
	defer pace.Stop()
	for i := 1; i < liveTrackers; i++ {
		<-pace.C
		if err := l.attach(ctx, addr, i); err != nil {
			return err
		}
	}
	return nil
}

// liveCluster is a job tracker, its trackers and the measurements.
type liveCluster struct {
	server   *jobtracker.Server
	http     *http.Server
	maps     []int // by job
	total    int
	cancel   context.CancelFunc
	loops    sync.WaitGroup
	trackers []*liveTracker

	mu        sync.Mutex
	ended     int
	waits     []time.Duration
	planTimes []time.Duration
}

// newLiveCluster returns a cluster with small and large jobs in random order.
func newLiveCluster(seed uint64, name string) *liveCluster {
	l := &liveCluster{}
	r := rand.New(rand.NewPCG(seed, 0))
	whole := liveTrackers * liveSlots * liveWaves
	for i := range small + large {
		n := whole / (small + 10*large)
		if i >= small {
			n *= 10
		}
		l.maps = append(l.maps, n)
		l.total += n
	}
	r.Shuffle(len(l.maps), func(i, k int) { l.maps[i], l.maps[k] = l.maps[k], l.maps[i] })
	l.server = jobtracker.New(jobtracker.Config{
		Log: jobtracker.NewMemoryLog(), FS: mem.New(1 << 20), Staging: liveStaging,
		Scheduling: wire.Scheduling{Scheduler: name, Delay: "none"},
		ReadSplits: func(_ dfs.FS, _ string, job wire.JobID) ([]core.Split, uint64, error) {
			return splitsOf(seed, job.N, l.maps[job.N-1]), splitsHash, nil
		},
		Policies: l.timed,
	})
	return l
}

const splitsHash = 1

// splitsOf returns a job's splits, on random trackers.
func splitsOf(seed uint64, job, n int) []core.Split {
	r := rand.New(rand.NewPCG(seed, uint64(job)))
	splits := make([]core.Split, n)
	for i := range splits {
		splits[i].Bytes = 64 << 20
		for range replicas {
			splits[i].Hosts = append(splits[i].Hosts, liveName(r.IntN(liveTrackers)))
		}
	}
	return splits
}

func liveName(i int) string { return fmt.Sprintf("live%04d", i) }

// timed returns a policy that records the times of its plans.
func (l *liveCluster) timed(name string) (scheduler.Policy, error) {
	p, err := menu.Policy(name)
	return timedPolicy{p, l}, err
}

type timedPolicy struct {
	scheduler.Policy
	l *liveCluster
}

func (t timedPolicy) Plan(s scheduler.Snapshot) (scheduler.Plan, error) {
	began := time.Now()
	plan, err := t.Policy.Plan(s)
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.planTimes = append(t.l.planTimes, time.Since(began))
	return plan, err
}

// serve runs the job tracker and its HTTP server.
func (l *liveCluster) serve(ctx context.Context) (addr string, err error) {
	listen, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.http = web.NewServer(web.New(web.Config{Server: l.server}), nil, nil, nil)
	// After an error of either loop, no map ends and liveUnder times out.
	l.loops.Go(func() { _ = l.server.Run(ctx) })
	l.loops.Go(func() { _ = l.http.Serve(listen) })
	return listen.Addr().String(), nil
}

// stop stops the cluster. It may be called twice.
func (l *liveCluster) stop() {
	l.cancel()
	l.http.Close()
	for _, t := range l.trackers {
		t.conn.Close()
	}
	l.loops.Wait()
}

func (l *liveCluster) endedMaps() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// liveTracker runs maps as timers. It fetches no map outputs: jobs do not get beyond their maps.
type liveTracker struct {
	l       *liveCluster
	name    string
	conn    *wire.Conn
	done    chan struct{}
	running sync.Map // see testbed.Heartbeats

	mu      sync.Mutex
	freedAt []time.Time
}

func (l *liveCluster) attach(ctx context.Context, addr string, i int) error {
	conn, err := web.DialStream(ctx, addr, nil)
	if err != nil {
		return err
	}
	t := &liveTracker{l: l, name: liveName(i), conn: conn, done: make(chan struct{})}
	l.trackers = append(l.trackers, t)
	if err := conn.Send(&wire.Hello{Version: wire.Version, Tracker: t.name, Process: uint64(i) + 1, Host: t.name,
		Addr: t.name + ":1", MapSlots: liveSlots, ReduceSlots: 1}); err != nil {
		return err
	}
	m, err := conn.Receive()
	if err != nil {
		return err
	}
	if _, ok := m.(*wire.Welcome); !ok {
		return fmt.Errorf("tracker %s: the job tracker answered %+v, want a welcome", t.name, m)
	}
	l.loops.Go(t.run)
	l.loops.Go(func() { testbed.Heartbeats(conn, &t.running, t.done) })
	return conn.Send(&wire.Inventory{})
}

func (t *liveTracker) run() {
	defer close(t.done)
	for {
		m, err := t.conn.Receive()
		if err != nil {
			return
		}
		if launch, ok := m.(*wire.Launch); ok {
			t.launch(launch.Attempt)
		}
	}
}

// send ignores errors: run notices the end of the connection.
func (t *liveTracker) send(m wire.Message) { _ = t.conn.Send(m) }

func (t *liveTracker) launch(id wire.AttemptID) {
	if id.Task.Kind != wire.Map {
		r := &wire.Result{}
		if id.Task.Kind == wire.Setup {
			r.Splits = &wire.SplitsDone{Maps: t.l.maps[id.Task.Job.N-1], Hash: splitsHash}
		}
		t.send(&wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: r})
		return
	}
	t.running.Store(id, true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.freedAt) > 0 {
		waited := time.Since(t.freedAt[0])
		t.freedAt = t.freedAt[1:]
		t.l.mu.Lock()
		t.l.waits = append(t.l.waits, waited)
		t.l.mu.Unlock()
	}
	time.AfterFunc(liveTask, func() { t.end(id) })
}

// end frees a slot and reports it.
func (t *liveTracker) end(id wire.AttemptID) {
	t.running.Delete(id)
	t.mu.Lock()
	t.freedAt = append(t.freedAt, time.Now())
	t.mu.Unlock()
	t.send(&wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{
		Took: liveTask, Bytes: 64 << 20,
		Output: &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Tracker: t.name, Addr: t.name + ":1", Bytes: 1 << 20, Digest: uint64(id.Task.N) + 1},
	}})
	t.l.mu.Lock()
	t.l.ended++
	t.l.mu.Unlock()
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
