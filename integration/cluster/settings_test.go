package cluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

// Changes by users hold after the leader is killed: a pools file, job settings, a suspension,
// another scheduler.
func TestSettingsSurvive(t *testing.T) {
	var pools string
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(pools, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const twoMaps = `<allocations><pool name="etl"><maxMaps>2</maxMaps></pool></allocations>`
	c := start(t, func(cfg *processes.Config) {
		pools = filepath.Join(cfg.Dir, "pools.xml")
		write(twoMaps)
		cfg.JobTrackerFlags = append(cfg.JobTrackerFlags, "-pools", pools, "-scheduler", "fair")
		cfg.TaskTrackers = 2
	})
	current := func() *web.Cluster {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			return new(web.Cluster)
		}
		return status
	}
	c.await("pools", func() bool { return current().Pools.Status == pools })

	c.mrsubmit("run", "-pool", "nowhere", c.Program("paced"), "-input", pools, "-output", filepath.Join(c.dir, "none")).
		Fail(1, `pool "nowhere" is unknown; there are [default etl]`)
	gated := c.paced(8, "-gate", "-D", "mapreduce.job.queuename=root.etl")
	gated.AwaitBegan("m", 2)
	c.paced(3).checkSuccess() // though six maps of etl wait
	if n := len(gated.Traces("m", "began")); n != 2 {
		t.Errorf("pool etl has run %d maps, want at most 2", n)
	}
	id := c.submitted()[0]

	c.mrsubmit("suspend", id).Succeed()
	gated.OpenGate()
	gated.AwaitTraces("m", "ended", 2)
	c.paced(3).checkSuccess()
	if n := len(gated.Traces("m", "began")); n != 2 {
		t.Errorf("%d maps of the suspended job have begun, want 2", n)
	}
	c.mrsubmit("cluster", "scheduler", "flex", "-metric", "max-stretch", "-delay", "dynamic").Succeed()
	if err := c.leader().Kill(); err != nil {
		t.Fatal(err)
	}
	c.leader() // mrsubmit looks for the next one only 10 s
	if printed := c.mrsubmit("set", id, "priority=HIGH", "deadline=-1m").Succeed(); !trial.ContainsAll(printed, []string{"pool etl", "priority HIGH", "late by", "suspended"}) {
		t.Errorf("mrsubmit set prints %s", printed)
	}
	if got, want := current().Scheduling, (web.Scheduling{Scheduler: "flex", Metric: "max-stretch", Delay: "dynamic"}); got != want {
		t.Errorf("the next leader has %+v, want %+v", got, want)
	}
	if printed := c.mrsubmit("list").Succeed(); !trial.ContainsAll(printed, []string{"running, suspended", "etl", "HIGH", "late by"}) {
		t.Errorf("mrsubmit list prints\n%s", printed)
	}

	write("<allocations>\n<pool name=\"etl\"><maxMaps>some</maxMaps></pool></allocations>")
	c.await("report of the broken file", func() bool {
		return strings.Contains(current().Pools.Status, pools+": the last valid version is in force: "+pools+`:2: maxMaps is "some"`)
	})
	if p := current().Pools.Pools; len(p) == 0 || p[len(p)-1].Max[0] != 2 {
		t.Errorf("after a broken file the pools are %+v", p)
	}
	write(`<allocations><pool name="etl"/></allocations>`)
	c.await("new pools", func() bool {
		p := current().Pools
		return p.Status == pools && p.Pools[len(p.Pools)-1].Max[0] == -1
	})
	c.mrsubmit("resume", id).Succeed()
	gated.checkSuccess()
	gated.CheckOnce("m")
	c.mrsubmit("set", id, "weight=2").Fail(1, "the job has ended")

	var jobs []web.Job
	if err := json.Unmarshal([]byte(c.mrsubmit("list", "-json").Succeed()), &jobs); err != nil {
		t.Fatal(err)
	}
	if slices.Reverse(jobs); len(jobs) != 3 || jobs[0].Settings.Pool != "etl" || !jobs[0].Settings.Late || jobs[0].Suspended {
		t.Errorf("at the end the jobs are %+v", jobs)
	}
}
