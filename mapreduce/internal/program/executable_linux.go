package program

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// adoptOrphans makes this process the parent of its descendants that lose their own, so that the
// tracker finds them.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux has it since 3.4
}
