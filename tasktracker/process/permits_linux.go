package process

import (
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// PermitsExecution reports whether the system, with its security modules, permits to execute a file. The
// file has no known format, so that nothing is executed.
func PermitsExecution(f *os.File) bool {
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{f}
	_, err := StartChild(cmd)
	return errors.Is(err, unix.ENOEXEC)
}
