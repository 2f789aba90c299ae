package schedulers

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// job is a job or flow to run.
type job struct {
	name          string
	flow          tasktimes.Flow // nil: a single job, with the fields below
	maps          int
	waits         tasktimes.Job
	args          []string // arguments besides those for these fields
	bytes         int      // map output of each map; 0: the job has no reduces
	reduces       int
	work          float64 // slot-seconds of its maps
	alone         float64 // divisor of stretch
	weight        float64
	clusterWeight float64 // the weight that the cluster knows
	due           float64 // seconds from the time at which all are present
	levels        []wire.SLAStep
}

// batch is jobs that are present together, in order of arrival.
type batch struct{ jobs []*job }

// outcome is the outcome of a run of a batch.
type outcome struct {
	ids   []wire.JobID // of a flow, its last job
	began time.Time    // when all jobs were present
	ends  []float64    // of the jobs, seconds from that time
	used  [2]float64   // fractions of the machine used by tasks and by daemons of this cluster
}

func (o *outcome) sum() float64 {
	total := 0.0
	for _, end := range o.ends {
		total += end
	}
	return total
}

// runWait bounds a run.
const runWait = 5 * time.Minute

// run starts the jobs together and waits for their ends: an earlier job holds all map slots
// until they are all present. It calls while, unless nil, at the start, with a context that
// ends when they have ended.
func (b *bench) run(c *testbed.Cluster, of *batch, while func(ctx context.Context, ids []wire.JobID)) (*outcome, error) {
	ctx, cancel := context.WithTimeout(b.Ctx, runWait)
	defer cancel()
	o := &outcome{}
	run := c.New("run") + "-"
	closed, err := b.barrier(ctx, c, run)
	if err != nil {
		return nil, err
	}
	var ids [][]wire.JobID
	for i, j := range of.jobs {
		all, err := b.submit(ctx, c, j, fmt.Sprintf("%sout%d", run, i))
		if err != nil {
			return nil, err
		}
		ids = append(ids, all)
		o.ids = append(o.ids, all[len(all)-1])
	}
	submitted, err := b.present(ctx, c, of, ids)
	if err != nil {
		return nil, err
	}
	tasks, daemons := c.Processor()
	o.began = time.Now()
	if err := os.WriteFile(run+"gate", nil, 0o666); err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	watching, stop := context.WithCancel(ctx)
	if while != nil {
		running.Go(func() { while(watching, o.ids) })
	}
	last, err := ended(ctx, c, append(slices.Clone(o.ids), closed))
	stop()
	running.Wait()
	if err != nil {
		return nil, err
	}
	tasksNow, daemonsNow := c.Processor()
	machine := time.Since(o.began).Seconds() * float64(runtime.NumCPU())
	o.used = [2]float64{(tasksNow - tasks) / machine, (daemonsNow - daemons) / machine}
	for i, j := range of.jobs {
		o.ends = append(o.ends, submitted[i].Add(last[i].Elapsed).Sub(o.began).Seconds())
		b.Say("%v %s: %d maps, %.1f slot-seconds, alone %.2f, due at %.1f, ended at %.2f", o.ids[i], j.name, j.maps, j.work, j.alone, j.due, o.ends[i])
	}
	return o, nil
}

// barrier runs a job that holds all map slots until its gate file exists. It has a reduce, so
// that its maps end without a grant to commit.
func (b *bench) barrier(ctx context.Context, c *testbed.Cluster, run string) (wire.JobID, error) {
	j := &job{name: "barrier", maps: c.MapSlots, bytes: 1, reduces: 1, waits: tasktimes.Job{Mean: time.Millisecond}, args: []string{"-gate", run + "gate"}}
	ids, err := b.submit(ctx, c, j, run+"barrier")
	if err != nil {
		return wire.JobID{}, err
	}
	id := ids[0]
	return id, testbed.Await(ctx, testbed.StartWait, "barrier", func() bool {
		s, err := c.API.Job(ctx, id)
		return err == nil && s.Maps.Running == c.MapSlots
	})
}

// submit does the same as mrsubmit run.
func (b *bench) submit(ctx context.Context, c *testbed.Cluster, j *job, out string) ([]wire.JobID, error) {
	sub, err := b.submission(ctx, c, j, out)
	if err != nil {
		return nil, err
	}
	return c.API.Submit(ctx, *sub)
}

// present waits until all jobs could begin (of flows, those without predecessors) and sets
// their goals, which count from now. It returns the times of their submissions.
func (b *bench) present(ctx context.Context, c *testbed.Cluster, of *batch, ids [][]wire.JobID) ([]time.Time, error) {
	submitted := make([]time.Time, len(ids))
	for i, all := range ids {
		for k, id := range all {
			if k > 0 && len(of.jobs[i].flow[k].After) > 0 {
				continue
			}
			s, err := b.setUp(ctx, c, id)
			if err != nil {
				return nil, err
			}
			submitted[i] = time.Now().Add(-time.Duration(s.ElapsedMillis) * time.Millisecond)
		}
	}
	for i, all := range ids {
		change := of.jobs[i].goals(time.Since(submitted[i]))
		if err := c.API.Change(ctx, all[0], change); err != nil {
			return nil, err
		}
	}
	return submitted, nil
}

// setUp waits until a job's maps could begin.
func (b *bench) setUp(ctx context.Context, c *testbed.Cluster, id wire.JobID) (s *web.Job, err error) {
	if err := testbed.Await(ctx, testbed.StartWait, fmt.Sprintf("%v that is set up", id), func() (ready bool) {
		s, err = c.API.Job(ctx, id)
		return err == nil && s.Maps.Total > 0 && s.State == wire.Running.String()
	}); err != nil {
		return nil, err
	}
	if s.Maps.Running+s.Maps.Done > 0 {
		return nil, fmt.Errorf("%v has begun before all jobs were present", id)
	}
	return s, nil
}

// goals is a change of a job's settings: goals counted from now, for a job of that age.
func (j *job) goals(age time.Duration) wire.Change {
	change := wire.Change{Weight: &j.clusterWeight, Deadline: new(seconds(j.due))}
	levels := slices.Clone(j.levels)
	for i := range levels {
		levels[i].After += age
	}
	change.SLA = &levels
	return change
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ended waits for the ends of jobs, which must succeed.
func ended(ctx context.Context, c *testbed.Cluster, ids []wire.JobID) (last []wire.JobStatus, err error) {
	for statuses, err := range c.API.Watch(ctx, ids) {
		if err != nil {
			return nil, err
		}
		last = statuses
	}
	for _, s := range last {
		if s.State != wire.Succeeded {
			return nil, fmt.Errorf("%v %s has %v: %s", s.ID, s.Name, s.State, s.Error)
		}
	}
	return last, nil
}

// submission stages the files of a submission as mrsubmit does.
func (b *bench) submission(ctx context.Context, c *testbed.Cluster, j *job, out string) (*wire.Submission, error) {
	in, err := b.lines(max(j.maps, 1))
	if err != nil {
		return nil, err
	}
	for _, n := range j.flow {
		if _, err := b.lines(n.Tasks - len(n.After)); err != nil {
			return nil, err
		}
	}
	exe := c.Program("waiting")
	args := append([]string{"-D", "mapreduce.input.fileinputformat.split.maxsize=8", "-D", "mapreduce.task.io.sort.mb=1",
		"-name", j.name, "-seed", fmt.Sprint(j.waits.Seed), "-map-time", j.waits.Mean.String(), "-spread", fmt.Sprint(j.waits.Spread),
		"-output", out}, j.args...)
	if j.bytes > 0 {
		args = append(args, "-map-bytes", fmt.Sprint(j.bytes), "-D", fmt.Sprintf("mapreduce.job.reduces=%d", j.reduces))
	}
	if j.flow != nil {
		args = append(args, "-flow", j.flow.String(), "-splits", b.Dir)
	} else {
		args = append(args, "-input", in)
	}
	sub, err := client.Plan(ctx, exe, args, os.Stderr)
	if err != nil {
		return nil, err
	}
	sub.Owner = "bench"
	files := local.New()
	if err := client.Prepare(ctx, files, &sub.Plan); err != nil {
		return nil, err
	}
	if err := client.Upload(files, c.Staging(), time.Now(), exe, &sub.Program); err != nil {
		return nil, err
	}
	return sub, client.Stage(files, c.Staging(), sub)
}

// lines writes an input of n splits. Both lanes may do so at once.
func (b *bench) lines(n int) (string, error) {
	b.inputs.Lock()
	defer b.inputs.Unlock()
	name := b.Path(fmt.Sprintf("in%d", n))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	return name, os.WriteFile(name, []byte(strings.Repeat("split  \n", n)), 0o666)
}
