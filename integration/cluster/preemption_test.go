package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
)

// TestPreemption (promise 35): a job that waits for all slots loses one to a pool below its minimum,
// and the others when it is suspended with -now. It has right output in the end.
func TestPreemption(t *testing.T) {
	var pools string
	c := start(t, func(cfg *processes.Config) {
		pools = filepath.Join(cfg.Dir, "pools.xml")
		text := `<allocations>
		  <queue name="day"><queue name="etl"><minResources>1 vcores</minResources><minSharePreemptionTimeout>1</minSharePreemptionTimeout></queue></queue>
		  <queue name="night"/>
		</allocations>`
		if err := os.WriteFile(pools, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		cfg.JobTrackerFlags = append(cfg.JobTrackerFlags, "-pools", pools, "-scheduler", "fair", "-preemption")
		cfg.TaskTrackers, cfg.MapSlots = 2, 2
	})
	c.mrsubmit("run", "-pool", "day", c.Program("paced"), "-input", pools, "-output", filepath.Join(c.dir, "none")).
		Fail(1, "pool day takes no jobs")
	const slots = 4
	gated := c.paced(2*slots, "-gate", "-D", "mapreduce.job.queuename=root.night")
	gated.AwaitBegan("m", slots)
	c.paced(1, "-D", "mapreduce.job.queuename=root.day.etl").checkSuccess()
	id := c.submitted()[0]
	if printed := c.mrsubmit("counters", id).Succeed(); !strings.Contains(printed, "NUM_KILLED_MAPS") || strings.Contains(printed, "NUM_FAILED_MAPS") {
		t.Errorf("the counters of the preempted job are\n%s", printed)
	}

	c.mrsubmit("suspend", "-now", id).Succeed()
	c.paced(slots).checkSuccess()
	gated.OpenGate()
	c.mrsubmit("resume", id).Succeed()
	gated.checkSuccess()
}
