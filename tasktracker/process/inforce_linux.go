package process

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/cgroup"
)

// LimitsInForce lists the limits that hold for a worker, for the error of a worker that
// exhausted memory or threads.
func LimitsInForce(limit Limits) string {
	var all []string
	if limit.Memory > 0 {
		all = append(all, fmt.Sprintf("%s=%d", limit.memoryName(), limit.Memory>>20))
	}
	if limit.Processes > 0 {
		all = append(all, fmt.Sprintf("%s=%d", limit.processesName(), limit.Processes))
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
	all = append(all, cgroup.Own().Texts...)
	if len(all) == 0 {
		return "no limits but the machine's"
	}
	return "limits: " + strings.Join(all, ", ")
}
