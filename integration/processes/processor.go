package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processor returns the processor seconds of running daemons' tasks, and of the daemons. Only
// Linux reports them.
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

// processorOf returns the time of a process, and of ended children that it has waited for; 0 if
// the process has ended.
func processorOf(pid int) (own, ended float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	const ticks = 100 // per second in /proc
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

// Children returns the running children of a process.
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
