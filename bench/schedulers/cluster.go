package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/quernmr/quern/bench/testbed"
)

// cluster is one job tracker and some task trackers.
type cluster struct {
	*testbed.Cluster
	runs atomic.Int64
}

func (b *bench) cluster(s testbed.Shape) (*cluster, error) {
	c, err := testbed.Start(b.ctx, b.programs(), b.path(fmt.Sprintf("cluster%d", b.clusters.Add(1))), s)
	return &cluster{Cluster: c}, err
}

// processor is the seconds of processor time that tasks and daemons have taken.
func (c *cluster) processor() (tasks [2]float64) {
	for _, d := range c.All() {
		if !d.Running() {
			continue
		}
		own, ended := processorOf(d.Pid())
		tasks[0] += ended
		tasks[1] += own
		for _, child := range children(d.Pid()) {
			live, _ := processorOf(child)
			tasks[0] += live
		}
	}
	return tasks
}

// processorOf is a process's own time and that of children it has waited for. One that has
// gone meanwhile took none.
func processorOf(pid int) (own, ended float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	const ticks = 100 // of the kernel's interface, a second
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	seconds := func(i int) float64 {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0
		}
		return n / ticks
	}
	return seconds(11) + seconds(12), seconds(13) + seconds(14)
}

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
