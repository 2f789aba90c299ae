package cluster_test

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

var jobID = regexp.MustCompile(`job_\d+_\d{4,}`)

// submitted returns the ids of all jobs, in the order of their submission.
func (c *cluster) submitted() []string {
	c.t.Helper()
	ids := jobID.FindAllString(c.mrsubmit("list").Succeed(), -1)
	slices.Reverse(ids) // the list has the newest first
	return ids
}

// The commands show jobs that run, have ended or were killed.
func TestCommands(t *testing.T) {
	c := start(t)
	done := c.paced(3)
	done.checkSuccess()
	running := c.paced(6, "-gate")
	running.AwaitBegan("m", 6)

	list := c.mrsubmit("list").Succeed()
	ids := jobID.FindAllString(list, -1)
	if len(ids) != 2 || !strings.Contains(list, "succeeded") || !strings.Contains(list, "running") {
		t.Fatalf("list:\n%s", list)
	}
	ended, live := ids[0], ids[1]
	if strings.Contains(strings.SplitN(list, ended, 2)[1][:len(ended)], "running") {
		ended, live = live, ended
	}
	for _, x := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"status", live}, []string{"running", "paced"}},
		{[]string{"counters", ended}, []string{"MAP_INPUT_RECORDS", "3"}},
		{[]string{"history"}, []string{ended}},
		{[]string{"history", ended}, []string{"attempt_", "tt", "succeeded"}},
		{[]string{"cluster"}, []string{"tt1", "tt2", "tt3", "jt1", "leader"}},
		{[]string{"logs", ended}, nil},
	} {
		printed := c.mrsubmit(x.args...).Succeed()
		if !trial.ContainsAll(printed, x.wants) {
			t.Errorf("%v lacks one of %q:\n%s", x.args, x.wants, printed)
		}
		if x.args[0] == "logs" {
			continue
		}
		printed = c.mrsubmit(append([]string{x.args[0], "-json"}, x.args[1:]...)...).Succeed()
		for dec := json.NewDecoder(strings.NewReader(printed)); dec.More(); {
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Errorf("%v -json: %v\n%s", x.args, err, printed)
				break
			}
		}
	}

	wait := c.mrsubmit("wait", live)
	c.mrsubmit("kill", live).Succeed()
	wait.Fail(1)
	running.Fail(1, "killed")
	c.mrsubmit("kill", live).Fail(1, "has ended")
	c.mrsubmit("wait", ended).Succeed()
	c.mrsubmit("status", "job_1_0001").Fail(1, "unknown job")
	c.mrsubmit("status", "nonsense").Fail(2, "nonsense")
}

// Row 41. Ctrl-C kills a job at any time. Either the job fails without output, or it succeeds
// with the right output.
func TestInterrupted(t *testing.T) {
	c := start(t, oneJobTracker)
	for _, x := range []struct {
		reduceTime string // long: the job still runs at the signal
		interrupt  func(j *job)
	}{
		{"1m", func(j *job) { j.AwaitBegan("m", 1); j.Signal(syscall.SIGINT) }},
		{"1m", func(j *job) { j.AwaitBegan("r", 1); j.Signal(syscall.SIGINT) }},
		{"200ms", func(j *job) { j.AwaitTraces("r", "ended", 1); j.TrySignal(syscall.SIGINT) }}, // the job may have ended
	} {
		j := c.paced(3, "-reduce-time", x.reduceTime)
		x.interrupt(j)
		if j.Exit() == 0 {
			j.checkSuccess()
			continue
		}
		if entries, _ := os.ReadDir(j.Out); len(entries) > 0 {
			t.Errorf("the killed job has left %v in %s", entries, j.Out)
		}
	}
}

// Row 41. If the terminal closes, only the display ends: the job continues, and the
// client prints how to watch it again.
func TestSIGHUP(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // under nohup, commands would inherit that the signal is ignored
	defer signal.Stop(heard)
	c := start(t, oneJobTracker)
	j := c.paced(3, "-gate")
	j.AwaitBegan("m", 3)
	j.Signal(syscall.SIGHUP)
	j.Fail(129, "go on", "mrsubmit wait job_")
	id := jobID.FindString(j.Stderr.String())
	wait := c.mrsubmit("wait", id)
	wait.Await("mrsubmit wait shows the job", func() bool { return strings.Contains(wait.Stderr.String(), id) })
	wait.Signal(syscall.SIGHUP)
	wait.Fail(129, "mrsubmit wait "+id)
	j.OpenGate()
	c.mrsubmit("wait", id).Succeed()
	checkCounts(t, j.Out, j.text)
	j.CheckOnce("m")
}

// One gossip address is enough, and a client needs only one job tracker.
func TestOneAddress(t *testing.T) {
	c := start(t)
	d, err := c.AddTaskTracker("tt9")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if err := d.Ready(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.await("fourth tracker", func() bool {
		status, err := c.client.Cluster(c.ctx)
		return err == nil && len(status.Trackers) == 4
	})
	leader := c.leader()
	for _, j := range c.JobTrackers {
		if j == leader {
			continue
		}
		printed := c.mrsubmit("list", "-jobtracker", j.Addr)
		printed.Succeed()
		break
	}
}

// A client that reaches no job tracker fails and lists the addresses it tried.
func TestUnreachable(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	list := c.mrsubmit("list", "-jobtracker", "127.0.0.1:1")
	in := filepath.Join(c.dir, "in")
	if err := os.WriteFile(in, trial.Lines(1), 0o666); err != nil {
		t.Fatal(err)
	}
	run := c.mrsubmit("run", "-jobtracker", "127.0.0.1:1", c.Program("wordcount"), "-input", in, "-output", filepath.Join(c.dir, "out"))
	list.Fail(1, "127.0.0.1:1")
	run.Fail(1, "127.0.0.1:1")
	if err := c.JobTrackers[0].Kill(); err != nil {
		t.Fatal(err)
	}
}
