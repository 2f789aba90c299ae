package program

import (
	"os"
	"syscall"
)

// closeExecutable keeps descriptor 5 from programs that the job starts, if it is the executable of
// this process, by which the tracker started it.
func closeExecutable() {
	inherited, err := os.Stat("/proc/self/fd/5")
	if err != nil {
		return
	}
	if own, err := os.Stat("/proc/self/exe"); err == nil && os.SameFile(inherited, own) {
		syscall.CloseOnExec(5)
	}
}
