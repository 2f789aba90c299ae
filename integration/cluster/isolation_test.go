//go:build linux

package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
)

// TestIsolation: where the machine permits it, jobs run in namespaces without being asked. Otherwise the cluster's status
// names the reason. With -isolation none they run in the machine's namespaces.
func TestIsolation(t *testing.T) {
	for _, level := range []string{"", "none"} {
		t.Run(level, func(t *testing.T) {
			c := start(t, func(cfg *processes.Config) {
				cfg.JobTrackers, cfg.TaskTrackers, cfg.TLS = 1, 1, true
				if level != "" {
					cfg.TaskTrackerFlags = []string{"-isolation", level}
				}
			})
			if status := c.mrsubmit("cluster").Succeed(); strings.Contains(status, "jobs are not isolated") {
				t.Skipf("this machine does not isolate jobs: %s", status)
			}
			j := c.paced(2, "-gate")
			j.AwaitBegan("m", 2)
			daemon := c.TaskTrackers[0].Pid()
			for _, worker := range processes.Children(daemon) {
				for _, kind := range []string{"user", "pid", "mnt", "ipc"} {
					own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", worker, kind))
					if err != nil {
						t.Fatal(err)
					}
					machine, _ := os.Readlink("/proc/self/ns/" + kind)
					if isolated := own != machine; isolated != (level == "") {
						t.Errorf("the worker has the machine's %s namespace: %v", kind, !isolated)
					}
				}
			}
			j.OpenGate()
			j.checkSuccess()
		})
	}
}
