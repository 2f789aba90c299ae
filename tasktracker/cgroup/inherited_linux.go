package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Own returns the limits of this process's groups and of all above them, as they were at the first call.
var Own = sync.OnceValue(func() Inherited { return inherited("/proc/self") })

func inherited(proc string) (all Inherited) {
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return all
	}
	text, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return all
	}
	own := parseOwn(string(text))
	for _, m := range parseMounts(string(mounts)) {
		dir, ok := m.group(own)
		if !ok {
			continue
		}
		for ; strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			all.add(dir)
			if dir == m.dir {
				break
			}
		}
	}
	return all
}

// add adds the limits of one group.
func (all *Inherited) add(dir string) {
	for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
		if n := parseBytes(get(dir, file)); n > 0 {
			all.Memory = lowest(all.Memory, n)
			all.Texts = append(all.Texts, fmt.Sprintf("%s %d MiB of control group %s", file, n>>20, dir))
		}
	}
	if value := strings.TrimSpace(get(dir, "pids.max")); value != "" && value != "max" {
		all.Texts = append(all.Texts, fmt.Sprintf("pids.max %s of control group %s", value, dir))
	}
	quota, period, _ := strings.Cut(get(dir, "cpu.max"), " ")
	cores := parseQuota(quota, period)
	if cores == 0 {
		cores = parseQuota(get(dir, "cpu.cfs_quota_us"), get(dir, "cpu.cfs_period_us"))
	}
	all.Cores = lowest(all.Cores, cores)
}

// lowest returns the lower of two limits; a limit of 0 is none.
func lowest[T int64 | float64](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
