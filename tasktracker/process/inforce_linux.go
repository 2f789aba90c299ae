package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/core"
)

// LimitsInForce lists the limits that hold for a worker, for the error of a worker that
// exhausted memory or threads.
func LimitsInForce(limit core.Limit) string {
	var all []string
	if limit.Memory > 0 {
		all = append(all, fmt.Sprintf("%s=%d", memoryProperty(limit.Kind), limit.Memory>>20))
	}
	if limit.Processes > 0 {
		all = append(all, fmt.Sprintf("quern.task.processes=%d", limit.Processes))
	}
	for _, l := range []struct {
		resource, unit int
		name           string
	}{
		{unix.RLIMIT_AS, 1 << 10, "ulimit -v"}, {unix.RLIMIT_DATA, 1 << 10, "ulimit -d"}, {unix.RLIMIT_NPROC, 1, "ulimit -u"},
	} {
		var r unix.Rlimit
		if unix.Getrlimit(l.resource, &r) == nil && r.Cur != unix.RLIM_INFINITY {
			all = append(all, fmt.Sprintf("%s %d", l.name, r.Cur/uint64(l.unit)))
		}
	}
	if limit := os.Getenv("GOMEMLIMIT"); limit != "" {
		all = append(all, "GOMEMLIMIT="+limit)
	}
	all = append(all, cgroupLimits()...)
	if len(all) == 0 {
		return "no limits but the machine's"
	}
	return "limits: " + strings.Join(all, ", ")
}

// cgroupLimits returns the limits of this process's control group and of all above it.
// They hold for workers too.
func cgroupLimits() (all []string) {
	mount, err := cgroupMount()
	if err != nil {
		return nil
	}
	group, err := delegatedCgroup()
	if err != nil {
		return nil
	}
	for ; strings.HasPrefix(group, mount); group = filepath.Dir(group) {
		for _, name := range []string{"memory.max", "pids.max"} {
			text, err := os.ReadFile(filepath.Join(group, name))
			if value := string(bytes.TrimSpace(text)); err == nil && value != "max" {
				if n, err := strconv.ParseInt(value, 10, 64); err == nil && name == "memory.max" {
					value = mebibytes(n)
				}
				all = append(all, fmt.Sprintf("%s %s of control group %s", name, value, group))
			}
		}
		if group == mount {
			break
		}
	}
	return all
}
