package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core"
)

func shortLease(cfg *processes.Config) { cfg.JobTrackerFlags = []string{"-lease", "2s"} }

// countingLease is for tests that lose a task tracker and count attempts: a busy machine loses no other one.
func countingLease(cfg *processes.Config) { cfg.JobTrackerFlags = []string{"-lease", "10s"} }

// oneJobTracker is for tests of task trackers, programs or the display, which need no other leader.
func oneJobTracker(cfg *processes.Config) { cfg.JobTrackers = 1 }

// mapsOn returns the number of maps that run on a task tracker.
func (c *cluster) mapsOn(d *processes.Daemon) int {
	c.t.Helper()
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range status.Trackers {
		if s.ID == d.ID {
			return s.Maps
		}
	}
	return 0
}

// awaitRunning waits until a task tracker runs attempts of a kind, and returns it.
func (c *cluster) awaitRunning(kind string) *processes.Daemon {
	c.t.Helper()
	var found *processes.Daemon
	c.await("tracker that runs attempts of kind "+kind, func() bool {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			return false
		}
		for _, s := range status.Trackers {
			if kind == "m" && s.Maps > 0 || kind == "r" && s.Reduces > 0 {
				for _, d := range c.TaskTrackers {
					if d.ID == s.ID && d.Running() {
						found = d
						return true
					}
				}
			}
		}
		return false
	})
	return found
}

// awaitMaps waits until the leader knows n running maps in all, and returns a task tracker that runs some, and how
// many. A new leader knows none before the inventories.
func (c *cluster) awaitMaps(n int) (found *processes.Daemon, maps int) {
	c.t.Helper()
	c.await(fmt.Sprintf("%d running maps", n), func() bool {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			return false
		}
		all := 0
		for _, s := range status.Trackers {
			all += s.Maps
			for _, d := range c.TaskTrackers {
				if d.ID == s.ID && s.Maps > 0 {
					found, maps = d, s.Maps
				}
			}
		}
		return all == n
	})
	return found, maps
}

// Row 11. Only tasks of the killed tracker rerun.
func TestTrackerKilled(t *testing.T) {
	c := start(t, countingLease)
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 4)
	d, lost := c.awaitMaps(4)
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	j.AwaitBegan("m", 4+lost)
	j.OpenGate()
	j.checkSuccess()
	if n := len(j.Traces("m", "began")); n != 4+lost {
		t.Errorf("%d map attempts, want 4 and %d again", n, lost)
	}
}

// awaitMapsDone waits until the leader knows n finished maps of the only job.
func (c *cluster) awaitMapsDone(n int) {
	c.t.Helper()
	c.await("finished maps", func() bool {
		jobs, err := c.client.Jobs(c.ctx, core.Query{})
		return err == nil && len(jobs) == 1 && jobs[0].Maps.Done >= n
	})
}

// startAllButOne starts a job of seven maps on a new cluster and waits until six have ended. The
// last map waits, so that the outputs of the six stay. It returns the last map's tracker.
func startAllButOne(c *cluster, flags ...string) (*job, *processes.Daemon) {
	c.t.Helper()
	j := c.paced(7, append(flags, "-gate", "-gated-map", "0", "-D", "mapreduce.job.reduces=3")...)
	c.awaitMapsDone(6)
	return j, c.awaitRunning("m")
}

// Row 12. Trackers with needed map outputs are killed: those maps rerun, and the output is right, with
// the files that maps write beside their map output. With one slot, the waiting map's tracker runs no other one.
func TestTrackerKilledWithOutputs(t *testing.T) {
	c := start(t, shortLease, func(cfg *processes.Config) { cfg.MapSlots = 1 })
	j, busy := startAllButOne(c, "-files")
	for _, d := range c.TaskTrackers {
		if d != busy {
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.await("loss of two trackers", func() bool {
		status, err := c.client.Cluster(c.ctx)
		return err == nil && len(status.Trackers) == 1
	})
	j.OpenGate()
	j.Succeed()
	j.takeMapFiles()
	checkCounts(t, j.Out, j.text)
	if n := len(j.Traces("m", "began")); n < 8 {
		t.Errorf("%d map attempts: no map has rerun", n)
	}
}

// takeMapFiles checks that the files of the maps have each word of the input once, and removes them.
func (j *job) takeMapFiles() {
	j.t.Helper()
	names, err := filepath.Glob(j.Out + "/words-*-m-*")
	if err != nil || len(names) == 0 {
		j.t.Fatalf("files of maps: %v %v", names, err)
	}
	var words []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err = errors.Join(err, os.Remove(name)); err != nil {
			j.t.Fatal(err)
		}
		words = append(words, content...)
	}
	trial.CheckEqual(j.t, j.Out, trial.SortLines(trial.CountWords(words)), trial.SortLines(trial.CountWords(j.text)))
}

// Row 13. A tracker is stopped for longer than a lease, then continued. The leader refuses the
// reports of its lost incarnation, and its attempts end.
func TestTrackerStopped(t *testing.T) {
	c := start(t, shortLease)
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 4)
	d, lost := c.awaitMaps(4)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	j.AwaitBegan("m", 4+lost)
	j.OpenGate()
	if err := d.Continue(); err != nil {
		t.Fatal(err)
	}
	j.checkSuccess()
}

// Row 14. A tracker that is restarted keeps the outputs of finished maps.
func TestTrackerRestarted(t *testing.T) {
	c := start(t)
	j, busy := startAllButOne(c)
	for _, d := range c.TaskTrackers {
		if d == busy {
			continue
		}
		if err := errors.Join(d.Kill(), d.Start(), d.Ready(c.ctx)); err != nil {
			t.Fatal(err)
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
}

// A tracker without a job tracker continues its attempts.
func TestWithoutJobTrackers(t *testing.T) {
	c := start(t)
	j := c.paced(6, "-map-time", "1s")
	j.AwaitBegan("m", 6)
	for _, d := range c.JobTrackers {
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	j.AwaitTraces("m", "ended", 6)
	for _, d := range c.JobTrackers {
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
	}
	j.checkSuccess()
	j.CheckOnce("m")
}

// Row 21. Attempts on a disk with write errors fail. The tracker stops using the disk, and the
// job continues on other trackers.
func TestDiskFails(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root can write to a directory without write permission, so the test replaces it by a file")
	}
	c := start(t, oneJobTracker)
	d := c.TaskTrackers[0]
	jobs := filepath.Join(d.Data(), "jobs")
	if err := errors.Join(os.RemoveAll(jobs), os.WriteFile(jobs, nil, 0o444)); err != nil {
		t.Fatal(err)
	}
	c.paced(9, "-map-time", "100ms").checkSuccess()
	c.await("report of the bad disk", func() bool {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			return false
		}
		for _, s := range status.Trackers {
			if s.ID == d.ID {
				return s.MapSlots == 0 && s.Trouble != ""
			}
		}
		return false
	})
	if err := os.Remove(jobs); err != nil {
		t.Fatal(err)
	}
}

// Row 23. However a program fails, only its own job fails.
func TestBadPrograms(t *testing.T) {
	c := start(t, oneJobTracker)
	in := filepath.Join(c.dir, "in")
	if err := os.WriteFile(in, trial.Lines(3), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		do    string
		flags []string
		wants []string
	}{
		{"panic", nil, []string{"deliberate panic", "on tracker tt"}},
		{"exit", nil, []string{"about to exit", "deliberate exit", "exit status 3"}},
		{"long-error", nil, []string{"failed 2 times", "deliberate error, with a long text", "…"}},
		{"counters", nil, []string{`counter limit exceeded: counter "120"`, "at most 120", "mapreduce.job.counters.max"}},
		{"hang", []string{"-D", "mapreduce.task.timeout=1000"}, []string{"no progress for 1s"}},
		{"orphan", []string{"-D", "mapreduce.task.timeout=1000"}, []string{"no progress for 1s"}},
		{"memory", []string{"-D", "mapreduce.map.memory.mb=200"}, []string{"memory", "200"}},
		{"processes", []string{"-D", "quern.task.processes=20"}, []string{"processes", "20"}},
	} {
		t.Run(x.do, func(t *testing.T) {
			args := append([]string{"run", "-D", "mapreduce.map.maxattempts=2"}, x.flags...)
			args = append(args, c.Program("faulty"), "-input", in, "-output", filepath.Join(c.dir, "out-"+x.do), "-at", "map", "-do", x.do)
			run := trial.Begin(t, c.Command(c.ctx, "mrsubmit", args...))
			run.Fail(1, x.wants...)
			if x.do == "panic" {
				id, _, _ := strings.Cut(run.Stderr.String(), " ")
				if logs := c.mrsubmit("logs", id).Succeed(); !trial.ContainsAll(logs, []string{"panic: deliberate panic", "faulty.go"}) {
					t.Errorf("logs are:\n%s", logs)
				}
			}
		})
	}
	c.paced(3).checkSuccess()
}

// killWorkers kills the workers of a task tracker, from outside: in its own namespace a worker cannot kill itself.
func (c *cluster) killWorkers(d *processes.Daemon) {
	c.t.Helper()
	for _, pid := range processes.Children(d.Pid()) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // one may have just ended
			c.t.Error(err)
		}
	}
}

// TestJoinWorkerKilled: when the worker of a JoinEach is killed after it has spilled, its file goes with the attempt, and the next
// attempt joins all.
func TestJoinWorkerKilled(t *testing.T) {
	c := start(t, small)
	in, out := c.file("in", "a\nb\nc\n"), filepath.Join(c.dir, "out")
	run := c.mrsubmit("run", c.Program("faulty"), "-at", "join", "-do", "hang", "-times", "1", "-input", in, "-output", out,
		"-D", "quern.join.buffer.bytes=4", "-D", "mapreduce.reduce.speculative=false")
	spilled := func() *processes.Daemon {
		for _, d := range c.TaskTrackers {
			if files, _ := filepath.Glob(filepath.Join(d.Data(), "jobs/*/*/work/join-*")); len(files) > 0 {
				return d
			}
		}
		return nil
	}
	run.Await("a file of the join", func() bool { return spilled() != nil })
	c.killWorkers(spilled())
	run.Succeed()
	trial.CheckEqual(t, out, trial.SortLines(readOutput(t, out)), []byte("a\ta\na\tb\na\tc\nb\ta\nb\tb\nb\tc\nc\ta\nc\tb\nc\tc\n"))
	id, _, _ := strings.Cut(run.Stderr.String(), " ")
	if attempts := c.mrsubmit("attempts", id).Succeed(); !strings.Contains(attempts, "its worker ended before it did: signal: killed") {
		t.Errorf("no worker was killed:\n%s", attempts)
	}
	if d := spilled(); d != nil {
		t.Errorf("tracker %s has left the file of a join", d.ID)
	}
}

// Row 26. If a map emits other records when it reruns, no reduce reads both outputs.
func TestNondeterministicMap(t *testing.T) {
	c := start(t, shortLease)
	j := c.paced(6, "-varying", "-D", "mapreduce.job.reduces=2", "-reduce-time", "2s")
	j.AwaitTraces("m", "ended", 6)
	if err := c.awaitRunning("r").Kill(); err != nil {
		t.Fatal(err)
	}
	if j.Exit() != 0 {
		if !strings.Contains(j.Stderr.String(), "not deterministic") {
			t.Errorf("the job failed for another reason:\n%s", j.Stderr.String())
		}
		return
	}
	// Each map emits one word that begins with attempt-.
	if n := bytes.Count(readOutput(t, j.Out), []byte("attempt-")); n != 6 {
		t.Errorf("the output has words of %d attempts, want 6", n)
	}
}

// Row 31. Of several jobs with the same output, one succeeds and the others are refused.
func TestOneOutput(t *testing.T) {
	c := start(t, oneJobTracker)
	in, out := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "out")
	if err := os.WriteFile(in, trial.Lines(3), 0o666); err != nil {
		t.Fatal(err)
	}
	var runs []*trial.Run
	for range 3 {
		runs = append(runs, c.mrsubmit("run", c.Program("wordcount"), "-input", in, "-output", out))
	}
	succeeded := 0
	for _, r := range runs {
		if r.Exit() == 0 {
			succeeded++
		} else if !strings.Contains(r.Stderr.String(), out) {
			t.Errorf("the message does not name %s:\n%s", out, r.Stderr.String())
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of three jobs with the same output have succeeded, want 1", succeeded)
	}
	checkCounts(t, out, trial.Lines(3))
}

// No task reruns while UDP is blocked: gossip only finds and suspects members.
func TestNoUDP(t *testing.T) {
	c := start(t, proxied)
	c.DropUDP(true)
	silence := time.NewTimer(time.Minute)
	defer silence.Stop()
	for over := false; !over; {
		j := c.paced(12, "-map-time", "1s", "-D", "mapreduce.job.reduces=2")
		j.checkSuccess()
		j.CheckOnce("m")
		j.CheckOnce("r")
		select {
		case <-silence.C:
			over = true
		default:
		}
	}
	c.await("log line about UDP", func() bool { return c.JobTrackers[0].Logged("UDP") })
}

// A lost task tracker is shown by mrsubmit cluster until it is back, by the display of its jobs,
// and in the log of the leader, which another job tracker may become meanwhile.
func TestLossReported(t *testing.T) {
	c := start(t, countingLease)
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	d, maps := c.awaitMaps(6)
	lost := fmt.Sprintf("tracker %s lost: %d maps rerun", d.ID, maps)
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	j.Await("the display shows: "+lost, func() bool { return strings.Contains(j.Stderr.String(), lost) })
	if printed := c.mrsubmit("cluster").Succeed(); !regexp.MustCompile(`(?m)^` + d.ID + ` .* lost since .*: ran 2 maps$`).MatchString(printed) {
		t.Errorf("mrsubmit cluster prints:\n%s", printed)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	c.await("the tracker's return", func() bool { return !strings.Contains(c.mrsubmit("cluster").Succeed(), "lost since") })
	j.OpenGate()
	j.checkSuccess()
	for _, line := range []string{
		"task tracker lost: nothing was heard of it for a lease", "job submitted", "job started", "job ended",
	} {
		c.await("line in a leader's log: "+line, func() bool {
			return slices.ContainsFunc(c.JobTrackers, func(jt *processes.Daemon) bool { return jt.Logged(line) })
		})
		for _, jt := range c.JobTrackers {
			if jt.Logged(line) && !jt.Logged("became leader") {
				t.Errorf("%s was never the leader, but has logged %q", jt.ID, line)
			}
		}
	}
	for _, line := range []string{"job begins here", "job has ended"} {
		c.await("line in a task tracker's log: "+line, func() bool { return c.TaskTrackers[0].Logged(line) || c.TaskTrackers[1].Logged(line) })
	}
}
