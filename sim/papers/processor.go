package papers

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what this process has used of processors so far; 0 where that
// cannot be told. Run times are told by it, since the machine may do other work.
func ProcessorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
