package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processor is the seconds of processor time that running daemons have taken, and the
// tasks of these. It is told by Linux alone.
func (c *Cluster) Processor() (tasks, daemons float64) {
	for _, d := range c.All() {
		if !d.Running() {
			continue
		}
		own, ended := processorOf(d.Pid())
		daemons += own
		tasks += ended
		for _, child := range Children(d.Pid()) {
			live, _ := processorOf(child)
			tasks += live
		}
	}
	return tasks, daemons
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

// Children are the processes that a process has started and that have not ended.
func Children(pid int) (pids []int) {
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
