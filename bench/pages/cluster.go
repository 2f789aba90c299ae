package pages

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/pages"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// The cluster: sizes of the promise of docs/pages.md.
const (
	trackers  = 1000
	slots     = 8 // for maps, of a tracker
	ended     = 1000
	histories = 10_000
	tasks     = 100_000
	staging   = "mem://pages/staging"
	taskTime  = 80 * time.Second // of the large job: a hundred of its tasks end each second
	patience  = 10 * time.Minute
)

// cluster is a job tracker and its trackers, all in this process. The trackers end the tasks of small jobs at once.
type cluster struct {
	server *jobtracker.Server
	pages  http.Handler
	large  wire.JobID
	steps  *meter.Histogram
	done   atomic.Int64 // tasks of the large job
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func begin(ctx context.Context) (*cluster, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &cluster{cancel: cancel}
	fs := mem.New(1 << 20)
	if err := writeHistories(fs); err != nil {
		return c, err
	}
	c.server = jobtracker.New(jobtracker.Config{
		Log: jobtracker.NewMemoryLog(), FS: fs, Staging: staging, History: true, Scheduling: wire.Scheduling{Scheduler: "fair", Delay: "none"},
		ReadSplits: func(_ dfs.FS, _ string, job wire.JobID) ([]core.Split, uint64, error) {
			return make([]core.Split, mapsOf(job)), 1, nil
		},
	})
	c.pages = pages.Mount(web.New(web.Config{ID: "jt", Server: c.server}))
	c.loops.Go(func() { _ = c.server.Run(ctx) }) // after an error no job ends, and the wait below fails
	for i := range trackers {
		if err := c.attach(i); err != nil {
			return c, err
		}
	}
	for i := range ended + 1 {
		if err := c.submit(ctx, i); err != nil {
			return c, err
		}
	}
	m, err := c.server.Metrics(ctx)
	if err != nil {
		return c, err
	}
	c.steps = m.Steps
	return c, testbed.Await(ctx, patience, "start of the large job", func() bool { return c.done.Load() > 1000 })
}

func (c *cluster) close() {
	c.cancel()
	c.loops.Wait()
}

// mapsOf is the number of maps of a job: the last one is large.
func mapsOf(job wire.JobID) int {
	if job.N > ended {
		return tasks
	}
	return 1
}

// submit submits job i. For a small one it waits for its end.
func (c *cluster) submit(ctx context.Context, i int) error {
	key := fmt.Sprintf("job%d", i)
	ids, err := c.server.Submit(ctx, core.Caller{}, wire.Submission{Key: key, Staging: dfs.Join(staging, key), Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "words"}}}})
	if err != nil {
		return err
	}
	if c.large = ids[0]; i == ended {
		return nil
	}
	for statuses, err := range c.server.Changes(ctx, ids) {
		if err != nil {
			return err
		}
		if state := statuses[0].State; state.Ended() {
			if state != wire.Succeeded {
				return fmt.Errorf("job %s has %v: %s", key, state, statuses[0].Error)
			}
			return nil
		}
	}
	return ctx.Err()
}

// writeHistories writes those of jobs that this job tracker has never known.
func writeHistories(fs dfs.FS) error {
	at := time.Now().Add(-time.Hour)
	for i := range histories {
		id := wire.JobID{Start: 7, N: i + 1}
		r := &history.Record{Job: wire.JobStatus{ID: id, Name: "words", State: wire.Succeeded, Elapsed: time.Minute}, Plan: wire.JobPlan{Name: "words"}, Owner: "ann", Submitted: at.Add(-time.Minute).UnixMilli(), Ended: at.UnixMilli(), HasView: true}
		if err := history.Write(fs, history.Name(staging, at, id), r); err != nil {
			return err
		}
	}
	return nil
}

// tracker runs tasks as timers.
type tracker struct {
	c       *cluster
	conn    *wire.Conn
	done    chan struct{}
	running sync.Map // see testbed.Heartbeats
}

func (c *cluster) attach(i int) error {
	own, other := wire.Pipe()
	t := &tracker{c: c, conn: own, done: make(chan struct{})}
	c.loops.Go(func() { _ = c.server.Attach(other, "") }) // its error is the end of the connection
	name := fmt.Sprintf("t%04d", i)
	if err := own.Send(&wire.Hello{Version: wire.Version, Tracker: name, Process: uint64(i) + 1, Host: name, Addr: name + ":1", MapSlots: slots, ReduceSlots: 4}); err != nil {
		return err
	}
	c.loops.Go(t.run)
	c.loops.Go(func() { testbed.Heartbeats(own, &t.running, t.done) })
	return nil
}

func (t *tracker) run() {
	defer close(t.done)
	defer t.conn.Close()
	for {
		m, err := t.conn.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *wire.Welcome:
			t.send(&wire.Inventory{})
		case *wire.Launch:
			t.launch(m.Attempt)
		case *wire.Grant:
			go t.end(m.Attempt)
		}
	}
}

// send ignores errors: run notices the end of the connection.
func (t *tracker) send(m wire.Message) { _ = t.conn.Send(m) }

func (t *tracker) launch(id wire.AttemptID) {
	large := id.Task.Kind == wire.Map && id.Task.Job.N > ended
	switch {
	case id.Task.Kind != wire.Map:
		go t.end(id)
		return
	case !large:
		go t.ready(id)
		return
	}
	t.running.Store(id, true)
	took := taskTime
	if n := id.Task.N; n < trackers*slots { // the first tasks end one after the other, so that later ones do too
		took = taskTime * time.Duration(n+1) / (trackers * slots)
	}
	time.AfterFunc(took, func() {
		t.ready(id)
		t.c.done.Add(1)
	})
}

// ready asks for the commit of a map's output.
func (t *tracker) ready(id wire.AttemptID) {
	t.send(&wire.Report{Attempt: id, State: wire.AttemptReady})
}

func (t *tracker) end(id wire.AttemptID) {
	t.running.Delete(id)
	r := &wire.Result{Took: taskTime, Bytes: 64 << 20}
	if id.Task.Kind == wire.Setup {
		r = &wire.Result{Splits: &wire.SplitsDone{Maps: mapsOf(id.Task.Job), Hash: 1}}
	}
	t.send(&wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: r})
}
