package papers

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the processor time of this process so far; 0 if unknown. Measurements of
// run times use it, because other programs hardly change it.
func ProcessorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
