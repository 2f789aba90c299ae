package daemon

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/quernmr/quern/tasktracker/cgroup"
)

// FitMemory lets the garbage collector keep this daemon below the memory limit of its control group, such as a
// container's, unless GOMEMLIMIT is set.
func FitMemory(log *slog.Logger) {
	group := cgroup.Own()
	limit := memoryLimit(group.Memory, os.Getenv("GOMEMLIMIT"))
	if limit == 0 {
		return
	}
	debug.SetMemoryLimit(limit)
	log.Info("the garbage collector keeps below the limit of the control group", "limit", group.Memory, "memory", limit)
}

// memoryLimit leaves a tenth for memory that the garbage collector does not count; 0: no limit.
func memoryLimit(group int64, own string) int64 {
	if own != "" {
		return 0
	}
	return group - group/10
}
