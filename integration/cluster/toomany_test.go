package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

var (
	tooMany     = flag.Int("too-many", 60, "jobs that TestTooManyJobs submits")
	tooManyTime = flag.Duration("too-many-time", 2*time.Second, "the time in which it submits them")
)

// Row 34. Many more jobs are submitted to four task trackers than they can run. All that are
// accepted succeed; the clients of the others are told. A client of a user that has a job already
// waits, says so, and is accepted later. The leader's memory is bounded. In a long run at most 5 % of the map slots are unused in samples while
// there are as many unfinished jobs as may run. There are no second attempts, so every used slot
// does useful work.
func TestTooManyJobs(t *testing.T) {
	const limit, running = 40, 12
	c := startWithLimit(t, *tooManyTime+10*trial.Deadline, func(cfg *processes.Config) {
		cfg.JobTrackers, cfg.TaskTrackers, cfg.ReduceSlots = 1, 4, 1
		cfg.Insecure = true // one client submits for many users
		cfg.JobTrackerFlags = []string{"-limits", fmt.Sprintf("jobs=%d,running=%d,user-jobs=1", limit, running)}
	})
	o := &overloaded{cluster: c, text: trial.Lines(4)}
	o.plan()
	held := o.submitHeld()
	waits := c.mrsubmit("run", "-jobtracker", c.Addrs(), c.Program("wordcount"), "-input", filepath.Join(c.dir, "in"), "-output", filepath.Join(c.dir, "waits"))
	waits.Await("mrsubmit says that it waits", func() bool {
		return trial.ContainsAll(waits.Stderr.String(), []string{"waiting until the cluster accepts the job: ", "(user-jobs)\n"})
	})
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		o.sample(running, done)
	}()
	o.submitAll()
	if err := c.client.Kill(c.ctx, held, "its user's next job waits for it"); err != nil {
		t.Fatal(err)
	}
	failed, why := 0, ""
	for statuses, err := range c.client.Watch(c.ctx, o.accepted) {
		if err != nil {
			t.Fatal(err)
		}
		failed, why = 0, ""
		for i := range statuses {
			if statuses[i].State != wire.Succeeded {
				failed++
				why = statuses[i].Error
			}
		}
	}
	waits.Succeed()
	if text := waits.Stderr.String(); !strings.Contains(text, "\naccepted after ") {
		t.Errorf("mrsubmit does not say when its job was accepted:\n%s", text)
	}
	close(done)
	<-sampled
	t.Logf("%d accepted, %d told; %d of %d map slots are used in samples; peak of the leader's memory %d MiB",
		len(o.accepted), o.told.Load(), o.used, o.slots, o.peakMemory())
	if failed > 0 || len(o.accepted)+int(o.told.Load()) != *tooMany || len(o.accepted) < min(limit-1, *tooMany) || o.most > limit {
		t.Errorf("%d of %d accepted jobs did not succeed; %d of %d were told; at most %d unfinished jobs, want %d: %s",
			failed, len(o.accepted), o.told.Load(), *tooMany, o.most, limit, why)
	}
	for _, i := range []int{0, len(o.accepted) - 1} {
		checkCounts(t, o.outputs[i], o.text)
	}
	if peak := o.peakMemory(); peak > 200 {
		t.Errorf("the leader has used %d MiB", peak)
	}
	if *tooMany >= 1000 && o.used*100 < o.slots*95 {
		t.Errorf("%d of %d map slots are used in samples, want 95 %%", o.used, o.slots)
	}
}

// overloaded is a cluster that gets too many jobs.
type overloaded struct {
	*cluster
	text     []byte
	template *wire.Submission
	told     atomic.Int64

	mu       sync.Mutex
	accepted []wire.JobID
	outputs  []string // of the accepted jobs

	used, slots, most int // of samples
}

const templateOut = "out-of-job"

// plan runs the job program once. Other jobs differ only in their outputs.
func (o *overloaded) plan() {
	o.t.Helper()
	in, traces := filepath.Join(o.dir, "in"), filepath.Join(o.dir, "traces")
	err := errors.Join(os.Mkdir(traces, 0o777), os.WriteFile(in, o.text, 0o666))
	if err == nil {
		flags := trial.Flags(in, filepath.Join(o.dir, templateOut), traces, "-map-time", "1s", "-D", "mapreduce.job.reduces=1", "-D", "mapreduce.task.io.sort.mb=1")
		o.template, err = client.Plan(o.ctx, o.Program("paced"), slices.Concat(trial.LinePerSplit(), flags), io.Discard)
	}
	if err == nil {
		err = errors.Join(client.Prepare(o.ctx, local.New(), &o.template.Plan),
			client.Upload(local.New(), o.Staging(), time.Now(), o.Program("paced"), &o.template.Program))
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// submission makes the submission of job i.
func (o *overloaded) submission(i int) (sub wire.Submission, out string) {
	name := fmt.Sprintf("out%d", i)
	rename := func(text string) string { return strings.ReplaceAll(text, templateOut, name) }
	sub = *o.template
	sub.Owner = fmt.Sprintf("user%d", i)
	sub.Program.Args, sub.Program.Flags = slices.Clone(sub.Program.Args), maps.Clone(sub.Program.Flags)
	for k := range sub.Program.Args {
		sub.Program.Args[k] = rename(sub.Program.Args[k])
	}
	for k, v := range sub.Program.Flags {
		sub.Program.Flags[k] = rename(v)
	}
	sub.Plan.Jobs = slices.Clone(sub.Plan.Jobs)
	sub.Plan.Jobs[0].Output = rename(sub.Plan.Jobs[0].Output)
	return sub, filepath.Join(o.dir, name)
}

// submitHeld submits and suspends a job of the user of mrsubmit.
func (o *overloaded) submitHeld() wire.JobID {
	o.t.Helper()
	sub, _ := o.submission(-1)
	suspended := true
	u, err := user.Current()
	if err == nil {
		sub.Owner = u.Username
		err = client.Stage(local.New(), o.Staging(), &sub)
	}
	var ids []wire.JobID
	if err == nil {
		ids, err = o.client.Submit(o.ctx, sub)
	}
	if err == nil {
		err = o.client.Change(o.ctx, ids[0], wire.Change{Suspended: &suspended})
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return ids[0]
}

// submitAll submits the jobs at equal intervals, several at a time.
func (o *overloaded) submitAll() {
	o.t.Helper()
	next := make(chan int)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := range next {
				if err := o.submit(i); err != nil {
					o.t.Errorf("job %d: %v", i, err)
				}
			}
		})
	}
	tick := time.NewTicker(*tooManyTime / time.Duration(*tooMany))
	defer tick.Stop()
	for i := range *tooMany {
		<-tick.C
		next <- i
	}
	close(next)
	clients.Wait()
}

// submit stages and submits a job as mrsubmit -no-wait does.
func (o *overloaded) submit(i int) error {
	sub, out := o.submission(i)
	files := local.New()
	if err := client.Stage(files, o.Staging(), &sub); err != nil {
		return err
	}
	ids, err := o.client.Submit(o.ctx, sub)
	if errors.Is(err, admission.ErrBusy) {
		o.told.Add(1)
		return files.RemoveAll(sub.Staging)
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accepted, o.outputs = append(o.accepted, ids...), append(o.outputs, out)
	return nil
}

// sample counts the map slots that are used, while there are enough jobs.
func (o *overloaded) sample(enough int, done <-chan struct{}) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	began := false
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(o.ctx, trial.Deadline)
		s, err := o.client.Cluster(ctx)
		cancel()
		if err != nil {
			continue
		}
		o.most = max(o.most, s.Jobs)
		used, slots := 0, 0
		for _, tracker := range s.Trackers {
			used += tracker.Maps
			slots += tracker.MapSlots
		}
		if began = began || used == slots; began && s.Jobs >= enough {
			o.used, o.slots = o.used+used, o.slots+slots
		}
	}
}

// peakMemory returns the most memory that the leader has used, in MiB.
func (o *overloaded) peakMemory() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.JobTrackers[0].Pid()))
	if err != nil {
		return 0 // not Linux
	}
	for line := range bytes.Lines(text) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && fields[0] == "VmHWM:" {
			n, _ := strconv.Atoi(fields[1])
			return n >> 10
		}
	}
	return 0
}
