package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

// Row 24. An operator excludes a task tracker that runs maps. They end, no other attempt runs there,
// also under the next leader and after a restart, until the operator readmits it.
func TestExcludedByOperator(t *testing.T) {
	c := start(t)
	c.mrsubmit("cluster", "exclude", "tt9").Fail(1, `unknown task tracker "tt9"`)
	c.mrsubmit("cluster", "exclude", "-for", "-5m", "tt1").Fail(2, "-for must be positive, got -5m0s")
	first := c.paced(6, "-gate")
	first.AwaitBegan("m", 6)
	out := c.TaskTrackers[0]
	if printed := c.mrsubmit("cluster", "exclude", "-reason", "the fan is loud", out.ID).Succeed(); !trial.ContainsAll(printed, []string{out.ID + " excluded by ", "until readmitted: the fan is loud"}) {
		t.Errorf("mrsubmit cluster exclude prints\n%s", printed)
	}
	first.OpenGate()
	first.checkSuccess()
	first.CheckOnce("m") // its running maps continued

	old := c.leader()
	if err := errors.Join(old.Kill(), out.Terminate(), out.Start(), old.Start(), out.Ready(c.ctx), old.Ready(c.ctx)); err != nil {
		t.Fatal(err)
	}
	c.awaitTrackers(3)
	excluded := func(status *web.Cluster) bool {
		x := status.OperatorExclusion(out.ID)
		return x != nil && x.Registered && x.Reason == "the fan is loud" && !x.Since.IsZero()
	}
	c.await("the exclusion under another leader", func() bool {
		status, err := c.client.Cluster(c.ctx)
		return err == nil && excluded(status)
	})
	second := c.paced(6, "-gate")
	second.AwaitBegan("m", 4)
	if n := c.mapsOn(out); n != 0 {
		t.Errorf("%d maps run on an excluded tracker", n)
	}
	c.checkExplain("map slots stay empty on trackers that operators exclude: " + out.ID)
	c.mrsubmit("cluster", "readmit", out.ID).Succeed()
	second.AwaitBegan("m", 6)
	c.await("maps on the readmitted tracker", func() bool { return c.mapsOn(out) == 2 })
	second.OpenGate()
	second.checkSuccess()
	second.CheckOnce("m")
}

// Row 24. An operator may exclude the last task tracker, and the command says that jobs wait then.
// An exclusion with a time ends by itself.
func TestLastExcludedByOperator(t *testing.T) {
	c := start(t, oneJobTracker, func(cfg *processes.Config) { cfg.TaskTrackers = 1 })
	only := c.TaskTrackers[0].ID
	c.mrsubmit("cluster", "exclude", only).Fail(0, only+" was the last task tracker in service")
	j := c.paced(3)
	c.await("a job that waits", func() bool {
		return strings.Contains(c.mrsubmit("list", "-json").Succeed(), "no connected one takes work (excluded by operators: "+only+")")
	})
	c.mrsubmit("cluster", "exclude", only, "-for", "1s").Succeed() // instead of the first exclusion
	j.checkSuccess()
	if status, err := c.client.Cluster(c.ctx); err != nil || status.OperatorExclusion(only) != nil {
		t.Errorf("the exclusion is not over: %+v, %v", status, err)
	}
}

// Row 24. While a health script finds an error, its task tracker gets no new work, and its running
// maps end. Afterwards it gets work again.
func TestHealthScript(t *testing.T) {
	c := start(t, oneJobTracker, func(cfg *processes.Config) { cfg.TaskTrackers = 1 })
	scripts := filepath.Join(c.dir, "scripts")
	if err := os.Mkdir(scripts, 0o700); err != nil {
		t.Fatal(err)
	}
	says, script := filepath.Join(scripts, "says"), filepath.Join(scripts, "health")
	say := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(says+".new", []byte(text), 0o600), os.Rename(says+".new", says)); err != nil {
			t.Fatal(err)
		}
	}
	say("all is well\n")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec cat "+says+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ill, err := c.AddTaskTracker("tt2", "-health-script", script, "-health-interval", "100ms")
	if err == nil {
		err = errors.Join(ill.Start(), ill.Ready(c.ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.awaitTrackers(2)
	trouble := func() string {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range status.Trackers {
			if s.ID == ill.ID {
				return s.Trouble
			}
		}
		return "not registered"
	}
	c.await("the first run of the script", func() bool { return trouble() == "" })
	first := c.paced(4, "-gate")
	first.AwaitBegan("m", 4)
	say("the fan is checked\nERROR the fan stands still\n")
	c.await("an unhealthy task tracker", func() bool { return trouble() == "unhealthy: ERROR the fan stands still" })
	first.OpenGate()
	first.checkSuccess()
	first.CheckOnce("m")

	second := c.paced(4, "-gate")
	second.AwaitBegan("m", 2)
	if n := c.mapsOn(ill); n != 0 {
		t.Errorf("%d maps run on an unhealthy task tracker", n)
	}
	c.checkExplain("map slots stay empty on unhealthy trackers: " + ill.ID)
	say("")
	second.AwaitBegan("m", 4)
	c.await("maps on the healthy tracker", func() bool { return c.mapsOn(ill) == 2 })
	second.OpenGate()
	second.checkSuccess()
	second.CheckOnce("m")
}

// checkExplain checks what mrsubmit explain prints for the job that was submitted last.
func (c *cluster) checkExplain(want string) {
	c.t.Helper()
	ids := c.submitted()
	if printed := c.mrsubmit("explain", ids[len(ids)-1]).Succeed(); !strings.Contains(printed, want) {
		c.t.Errorf("mrsubmit explain prints\n%s", printed)
	}
}
