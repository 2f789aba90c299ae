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

// The live cluster: trackers in this process, each with its own connection to a job tracker in
// it, with a log in memory. A map costs the log nothing.
const (
	liveTrackers = 1000
	liveSlots    = 2
	liveTask     = 500 * time.Millisecond
	liveWaves    = 40 // of all slots, for all jobs together
	liveStaging  = "mem://live/staging"
	replicas     = 3
)

// live measures the time from the report of an attempt's end to the launch in its slot, at the
// tracker.
func (b *bench) live() error {
	testbed.Table("scheduler", "tasks", "a second", "slot freed → next task received: p50", "p99", "worst", "to reach", "plans made in: p50", "p99")
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
	if err := l.begin(ctx, addr); err != nil {
		return err
	}
	err = testbed.Await(ctx, runWait, "end of all maps", func() bool { return l.count() == l.total })
	took := time.Since(began)
	l.stop()
	if err != nil {
		return err
	}
	slices.Sort(l.waited)
	slices.Sort(l.planned)
	reach := "–"
	if name == "flex" {
		reach = "p99 ≤ 20 ms"
	}
	testbed.Row(name, fmt.Sprint(l.total), fmt.Sprintf("%.0f", float64(l.total)/took.Seconds()),
		millis(quantile(l.waited, 0.5)), millis(quantile(l.waited, 0.99)), millis(quantile(l.waited, 1)), reach,
		millis(quantile(l.planned, 0.5)), millis(quantile(l.planned, 0.99)))
	return nil
}

// begin attaches the trackers one by one over the length of a task, so that tasks do not all
// end at once ever after. The first tracker sets the jobs up.
func (l *liveCluster) begin(ctx context.Context, addr string) error {
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

// liveCluster is a job tracker and its trackers' measurements.
type liveCluster struct {
	server *jobtracker.Server
	http   *http.Server
	maps   []int // by job
	total  int
	cancel context.CancelFunc
	loops  sync.WaitGroup
	open   []*liveTracker

	mu      sync.Mutex
	ended   int
	waited  []time.Duration
	planned []time.Duration
}

// newLiveCluster draws ten jobs of two kinds.
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

// splitsOf places a job's input.
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

// timed finds a policy and times its calls.
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
	t.l.planned = append(t.l.planned, time.Since(began))
	return plan, err
}

// serve runs the job tracker and its HTTP server.
func (l *liveCluster) serve(ctx context.Context) (addr string, err error) {
	listen, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.http = web.NewServer(web.New(web.Config{Server: l.server}), nil)
	l.loops.Go(func() { _ = l.server.Run(ctx) })    // after an error nothing ends, which shows
	l.loops.Go(func() { _ = l.http.Serve(listen) }) // likewise
	return listen.Addr().String(), nil
}

// stop stops the cluster, once.
func (l *liveCluster) stop() {
	l.cancel()
	l.http.Close()
	for _, t := range l.open {
		t.conn.Close()
	}
	l.loops.Wait()
}

func (l *liveCluster) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// liveTracker runs maps that are timers. Its homes gather nothing: no job gets beyond its maps.
type liveTracker struct {
	l    *liveCluster
	name string
	conn *wire.Conn
	ends chan struct{}

	mu    sync.Mutex // also guards conn's sending
	freed []time.Time
	runs  map[wire.AttemptID]bool
}

func (l *liveCluster) attach(ctx context.Context, addr string, i int) error {
	conn, err := web.DialStream(ctx, addr, nil)
	if err != nil {
		return err
	}
	t := &liveTracker{l: l, name: liveName(i), conn: conn, ends: make(chan struct{}), runs: make(map[wire.AttemptID]bool)}
	l.open = append(l.open, t)
	if err := conn.Send(&wire.Hello{Version: wire.Version, Tracker: t.name, Process: uint64(i) + 1, Host: t.name,
		Addr: t.name + ":1", MapSlots: liveSlots, ReduceSlots: 1}); err != nil {
		return err
	}
	m, err := conn.Receive()
	if err != nil {
		return err
	}
	if _, ok := m.(*wire.Welcome); !ok {
		return fmt.Errorf("tracker %s is answered by %+v", t.name, m)
	}
	l.loops.Go(t.run)
	l.loops.Go(t.beat)
	return conn.Send(&wire.Inventory{})
}

// beat renews the lease as trackers do while tasks show no progress.
func (t *liveTracker) beat() {
	tick := time.NewTicker(5 * time.Second / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.mu.Lock()
			beat := &wire.Heartbeat{}
			for id := range t.runs {
				beat.Attempts = append(beat.Attempts, wire.Report{Attempt: id, State: wire.AttemptRunning})
			}
			t.mu.Unlock()
			t.say(beat)
		case <-t.ends:
			return
		}
	}
}

func (t *liveTracker) run() {
	defer close(t.ends)
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

// say sends a message; run notices the end of the connection.
func (t *liveTracker) say(m wire.Message) { _ = t.conn.Send(m) }

func (t *liveTracker) launch(id wire.AttemptID) {
	if id.Task.Kind != wire.Map {
		r := &wire.Result{}
		if id.Task.Kind == wire.Setup {
			r.Splits = &wire.SplitsDone{Maps: t.l.maps[id.Task.Job.N-1], Hash: splitsHash}
		}
		t.say(&wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: r})
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs[id] = true
	if len(t.freed) > 0 {
		waited := time.Since(t.freed[0])
		t.freed = t.freed[1:]
		t.l.mu.Lock()
		t.l.waited = append(t.l.waited, waited)
		t.l.mu.Unlock()
	}
	time.AfterFunc(liveTask, func() { t.end(id) })
}

// end frees a slot and reports it.
func (t *liveTracker) end(id wire.AttemptID) {
	t.mu.Lock()
	delete(t.runs, id)
	t.freed = append(t.freed, time.Now())
	t.mu.Unlock()
	t.say(&wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{
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
