package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// Row 1 of docs/promises.md. The leader is killed in every phase of a job. Running
// attempts continue, and no task reruns.
func TestLeaderKilled(t *testing.T) {
	c := start(t)
	for i, waitForPhase := range []func(j *job){
		func(j *job) {}, // at about the submission
		func(j *job) { j.AwaitBegan("m", 3) },
		func(j *job) { j.AwaitTraces("m", "ended", 24) },
		func(j *job) { j.AwaitBegan("r", 1) },
		func(j *job) { j.AwaitTraces("r", "ended", 2) }, // at about the job's commit
	} {
		j := c.paced(24, "-map-time", "100ms", "-reduce-time", "300ms", "-D", "mapreduce.job.reduces=2")
		waitForPhase(j)
		old := c.leader()
		if err := old.Kill(); err != nil {
			t.Fatal(err)
		}
		j.checkSuccess()
		j.CheckOnce("m")
		j.CheckOnce("r")
		if err := errors.Join(old.Start(), old.Ready(c.ctx)); err != nil {
			t.Fatal(err)
		}
		t.Logf("phase %d: %s was the leader", i, old.ID)
	}
}

// Row 2. After all job trackers are killed and restarted, they know everything that the cluster
// has acknowledged, and adopt the running attempts.
func TestAllJobTrackersKilled(t *testing.T) {
	c := start(t)
	first := c.paced(3)
	first.checkSuccess()
	j := c.paced(12, "-gate")
	j.AwaitBegan("m", 6)
	for _, d := range c.JobTrackers {
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range c.JobTrackers {
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range c.JobTrackers {
		if err := d.Ready(c.ctx); err != nil {
			t.Fatal(err)
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	list := c.mrsubmit("list").Succeed()
	if n := strings.Count(list, "succeeded"); n != 2 {
		t.Errorf("%d jobs are listed as succeeded, want 2:\n%s", n, list)
	}
}

// Row 3. A leader that is stopped and continued later notices the next leader.
func TestLeaderStopped(t *testing.T) {
	// A task tracker leaves the stopped leader after a lease. The next leader waits for it until a lease after its election,
	// so a longer election leaves a busy machine more time.
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackerFlags = []string{"-lease", "5s", "-raft-timeout", "2s"} })
	j := c.paced(12, "-gate")
	j.AwaitBegan("m", 6)
	old := c.leader()
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}
	c.await("other leader", func() bool { return c.leaderExcept(old) != nil })
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	if err := old.Continue(); err != nil {
		t.Fatal(err)
	}
	c.await("end of the old leader's term", func() bool { return c.follows(old) })
	c.paced(3).checkSuccess()
}

// follows reports whether a job tracker answers that it is not the leader.
func (c *cluster) follows(d *processes.Daemon) bool {
	status, err := d.Status(c.ctx)
	return err == nil && !status.IsLeader
}

// leaderExcept returns a leader other than the given job tracker; nil: none.
func (c *cluster) leaderExcept(except *processes.Daemon) *processes.Daemon {
	d, _ := c.Leader(c.ctx, except)
	return d
}

func proxied(cfg *processes.Config) { cfg.Proxied = true }

// Rows 4 and 5. A leader is isolated from the other job trackers, but not from the task trackers.
// It steps down, and the majority elects another one.
func TestLeaderIsolated(t *testing.T) {
	c := start(t, proxied)
	j := c.paced(12, "-gate")
	j.AwaitBegan("m", 6)
	old := c.leader()
	c.Isolate(old)
	c.await("end of the isolated leader's term", func() bool { return c.follows(old) })
	c.await("other leader", func() bool { return c.leaderExcept(old) != nil })
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")

	// The isolated job tracker refuses requests.
	c.checkMisdirected(old)
	c.Heal()
	c.paced(3).checkSuccess()
	c.await("leader that all job trackers know", func() bool {
		known := make(map[string]bool)
		for _, d := range c.JobTrackers {
			status, err := d.Status(c.ctx)
			if err != nil {
				return false
			}
			known[status.Leader] = true
		}
		return len(known) == 1
	})
}

// checkMisdirected checks that a job tracker refuses requests because it is not the leader.
func (c *cluster) checkMisdirected(d *processes.Daemon) {
	c.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.Dialer(identity.JobTracker), DisableKeepAlives: true}}
	resp, err := client.Get("https://" + d.Addr + "/v1/jobs")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var problem web.Error
	err = json.NewDecoder(resp.Body).Decode(&problem)
	if resp.StatusCode != http.StatusMisdirectedRequest || err != nil || problem.Text == "" {
		c.t.Errorf("%s answers %s, %+v (%v), want a refusal as misdirected", d.ID, resp.Status, problem, err)
	}
}

// Row 5. If two of three job trackers are killed, the last one refuses requests.
func TestNoMajority(t *testing.T) {
	c := start(t)
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	leader := c.leader()
	var killed []*processes.Daemon
	for _, d := range c.JobTrackers {
		if d != leader {
			killed = append(killed, d)
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.await("end of the last job tracker's term", func() bool { return c.follows(leader) })
	c.checkMisdirected(leader)
	for _, d := range killed {
		if err := errors.Join(d.Start(), d.Ready(c.ctx)); err != nil {
			t.Fatal(err)
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
}

// After the loss of a majority, jobtracker recover starts a new cluster from one job
// tracker's state.
func TestRecover(t *testing.T) {
	c := start(t)
	c.paced(3).checkSuccess()
	survivor := c.leader()
	for _, d := range c.JobTrackers {
		if d != survivor {
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.command("jobtracker", "recover", "-data", survivor.Data(), "-id", survivor.ID, "-raft", survivor.Raft).Fail(1, "in use")
	if err := survivor.Kill(); err != nil {
		t.Fatal(err)
	}
	printed := c.command("jobtracker", "recover", "-data", survivor.Data(), "-id", survivor.ID, "-raft", survivor.Raft).Succeed()
	t.Log(printed)
	if err := errors.Join(survivor.Start(), survivor.Ready(c.ctx)); err != nil {
		t.Fatal(err)
	}
	c.paced(3).checkSuccess()
	if list := c.mrsubmit("list").Succeed(); strings.Count(list, "succeeded") != 2 {
		t.Errorf("want two jobs that succeeded:\n%s", list)
	}
}

// submission reads the only staged submission.
func (c *cluster) submission() *wire.Submission {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "staging", "*", wire.StagedSubmission))
	if err != nil || len(files) != 1 {
		c.t.Fatalf("submissions: %v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		c.t.Fatal(err)
	}
	sub, err := wire.ReadAs[*wire.Submission](bytes.NewReader(content))
	if err != nil {
		c.t.Fatal(err)
	}
	sub.Digest = wire.StagedDigest(content)
	return sub
}

// Rows 6 and 7. A submission that is sent several times, to any job trackers, is one job.
func TestSubmittedTwice(t *testing.T) {
	c := start(t)
	j := c.paced(3, "-gate")
	j.AwaitBegan("m", 3)
	jobs, err := c.client.Jobs(c.ctx, core.Query{})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	sub := c.submission()
	for range 3 {
		ids, err := c.client.Submit(c.ctx, *sub)
		if err != nil || len(ids) != 1 || ids[0].String() != jobs[0].ID {
			t.Errorf("submitted again: %v, %v, want %v", ids, err, jobs[0].ID)
		}
		if err := c.leader().Kill(); err != nil {
			t.Fatal(err)
		}
		for _, d := range c.JobTrackers {
			if !d.Running() {
				if err := errors.Join(d.Start(), d.Ready(c.ctx)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	if jobs, err := c.client.Jobs(c.ctx, core.Query{}); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs in the end: %v", len(jobs), err)
	}
}

// Five job trackers survive the loss of two, including the leader.
func TestFiveJobTrackers(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 5, 1 })
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 2)
	for range 2 {
		if err := c.leader().Kill(); err != nil {
			t.Fatal(err)
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
}
