package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// peakWorker runs a job and gives the largest VmHWM, in bytes, that any of its
// worker processes showed. VmHWM never falls, so looking often is enough.
func peakWorker(cmd *exec.Cmd) (int64, error) {
	if err := os.RemoveAll(cmd.Args[slices.Index(cmd.Args, "-output")+1]); err != nil {
		return 0, err
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var peak int64
	for {
		select {
		case err := <-done:
			if err != nil {
				return 0, fmt.Errorf("%w\n%s", err, &output)
			}
			return peak, nil
		case <-look.C:
			for _, status := range childStatuses(cmd.Process.Pid) {
				peak = max(peak, status.hwm)
			}
		}
	}
}

type procStatus struct {
	parent int
	hwm    int64 // bytes
}

func childStatuses(parent int) []procStatus {
	var children []procStatus
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		if s := parseStatus(string(text)); s.parent == parent {
			children = append(children, s)
		}
	}
	return children
}

func parseStatus(text string) procStatus {
	var s procStatus
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "PPid":
			s.parent = int(n)
		case name == "VmHWM":
			s.hwm = n << 10
		}
	}
	return s
}
