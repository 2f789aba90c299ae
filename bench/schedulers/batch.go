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

// job is a job or flow of a batch, with its goals.
type job struct {
	name          string
	flow          tasktimes.Flow // nil: a single job, with the fields below
	maps          int
	taskTimes     tasktimes.Job
	args          []string // further arguments
	bytes         int      // map output of each map; 0: the job has no reduces
	reduces       int
	work          float64 // slot-seconds of all maps
	alone         float64 // seconds or slot-seconds alone: the divisor of stretch
	weight        float64
	clusterWeight float64 // the weight that the cluster knows
	deadline      float64 // seconds after the start of the batch
	levels        []wire.SLAStep
}

// batch is jobs that start together, in order of arrival.
type batch struct{ jobs []*job }

// outcome is the result of a batch's run.
type outcome struct {
	ids        []wire.JobID // of a flow, its last job
	began      time.Time    // start of the batch: all jobs were ready
	ends       []float64    // of the jobs, in seconds after began
	machineUse [2]float64   // fractions of the machine used by tasks and by daemons of this cluster
}

func (o *outcome) sum() float64 {
	total := 0.0
	for _, end := range o.ends {
		total += end
	}
	return total
}

// runWait limits a run.
const runWait = 5 * time.Minute

// run starts the jobs together and waits for their ends: another job holds all map slots until
// all jobs are ready. It calls during, unless nil, in a goroutine; the context ends with the jobs.
func (b *bench) run(c *testbed.Cluster, drawn *batch, during func(ctx context.Context, ids []wire.JobID)) (*outcome, error) {
	ctx, cancel := context.WithTimeout(b.Ctx, runWait)
	defer cancel()
	o := &outcome{}
	run := c.NewPath("run") + "-"
	barrier, err := b.barrier(ctx, c, run)
	if err != nil {
		return nil, err
	}
	var ids [][]wire.JobID
	for i, j := range drawn.jobs {
		all, err := b.submit(ctx, c, j, fmt.Sprintf("%sout%d", run, i))
		if err != nil {
			return nil, err
		}
		ids = append(ids, all)
		o.ids = append(o.ids, all[len(all)-1])
	}
	submitted, err := b.awaitReady(ctx, c, drawn, ids)
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
	if during != nil {
		running.Go(func() { during(watching, o.ids) })
	}
	last, err := awaitEnds(ctx, c, append(slices.Clone(o.ids), barrier))
	stop()
	running.Wait()
	if err != nil {
		return nil, err
	}
	tasksNow, daemonsNow := c.Processor()
	machine := time.Since(o.began).Seconds() * float64(runtime.NumCPU())
	o.machineUse = [2]float64{(tasksNow - tasks) / machine, (daemonsNow - daemons) / machine}
	for i, j := range drawn.jobs {
		o.ends = append(o.ends, submitted[i].Add(last[i].Elapsed).Sub(o.began).Seconds())
		b.Logf("%v %s: %d maps, %.1f slot-seconds, alone %.2f, due at %.1f, ended at %.2f", o.ids[i], j.name, j.maps, j.work, j.alone, j.deadline, o.ends[i])
	}
	return o, nil
}

// barrier starts a job that holds all map slots until its gate file exists. It has a reduce, so
// that its maps need no grant to commit.
func (b *bench) barrier(ctx context.Context, c *testbed.Cluster, run string) (wire.JobID, error) {
	j := &job{name: "barrier", maps: c.MapSlots, bytes: 1, reduces: 1, taskTimes: tasktimes.Job{Mean: time.Millisecond}, args: []string{"-gate", run + "gate"}}
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

// submit submits a job as mrsubmit run does.
func (b *bench) submit(ctx context.Context, c *testbed.Cluster, j *job, out string) ([]wire.JobID, error) {
	sub, err := b.submission(ctx, c, j, out)
	if err != nil {
		return nil, err
	}
	return c.API.Submit(ctx, *sub)
}

// awaitReady waits until all jobs without predecessors could begin, then sets the jobs' goals,
// which count from now. It returns the times of submission.
func (b *bench) awaitReady(ctx context.Context, c *testbed.Cluster, drawn *batch, ids [][]wire.JobID) ([]time.Time, error) {
	submitted := make([]time.Time, len(ids))
	for i, all := range ids {
		for k, id := range all {
			if k > 0 && len(drawn.jobs[i].flow[k].After) > 0 {
				continue
			}
			s, err := b.awaitSetUp(ctx, c, id)
			if err != nil {
				return nil, err
			}
			submitted[i] = time.Now().Add(-time.Duration(s.ElapsedMillis) * time.Millisecond)
		}
	}
	for i, all := range ids {
		change := drawn.jobs[i].goals(time.Since(submitted[i]))
		if err := c.API.Change(ctx, all[0], change); err != nil {
			return nil, err
		}
	}
	return submitted, nil
}

// awaitSetUp waits until a job's maps could begin.
func (b *bench) awaitSetUp(ctx context.Context, c *testbed.Cluster, id wire.JobID) (s *web.Job, err error) {
	if err := testbed.Await(ctx, testbed.StartWait, fmt.Sprintf("setup of %v", id), func() (ready bool) {
		s, err = c.API.Job(ctx, id)
		return err == nil && s.Maps.Total > 0 && s.State == wire.Running.String()
	}); err != nil {
		return nil, err
	}
	if s.Maps.Running+s.Maps.Done > 0 {
		return nil, fmt.Errorf("%v began before all jobs were ready", id)
	}
	return s, nil
}

// goals returns a change of a job's settings. The deadline counts from now; the steps of an SLA
// count from the submission, so age is added to them.
func (j *job) goals(age time.Duration) wire.Change {
	change := wire.Change{Weight: &j.clusterWeight, Deadline: new(seconds(j.deadline))}
	levels := slices.Clone(j.levels)
	for i := range levels {
		levels[i].After += age
	}
	change.SLA = &levels
	return change
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// awaitEnds waits for the ends of jobs, which must succeed.
func awaitEnds(ctx context.Context, c *testbed.Cluster, ids []wire.JobID) (last []wire.JobStatus, err error) {
	for statuses, err := range c.API.Watch(ctx, ids) {
		if err != nil {
			return nil, err
		}
		last = statuses
	}
	for _, s := range last {
		if s.State != wire.Succeeded {
			return nil, fmt.Errorf("%v %s: %v: %s", s.ID, s.Name, s.State, s.Error)
		}
	}
	return last, nil
}

// submission stages the files of a submission as mrsubmit does.
func (b *bench) submission(ctx context.Context, c *testbed.Cluster, j *job, out string) (*wire.Submission, error) {
	in, err := b.writeSplits(max(j.maps, 1))
	if err != nil {
		return nil, err
	}
	for _, n := range j.flow {
		if _, err := b.writeSplits(n.Tasks - len(n.After)); err != nil {
			return nil, err
		}
	}
	exe := c.Program("waiting")
	args := append([]string{"-D", "mapreduce.input.fileinputformat.split.maxsize=8", "-D", "mapreduce.task.io.sort.mb=1",
		"-name", j.name, "-seed", fmt.Sprint(j.taskTimes.Seed), "-map-time", j.taskTimes.Mean.String(), "-spread", fmt.Sprint(j.taskTimes.Spread),
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

// writeSplits writes an input of n splits. Several lanes may call it at once.
func (b *bench) writeSplits(n int) (string, error) {
	b.inputs.Lock()
	defer b.inputs.Unlock()
	name := b.Path(fmt.Sprintf("in%d", n))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	return name, os.WriteFile(name, []byte(strings.Repeat("split  \n", n)), 0o666)
}
