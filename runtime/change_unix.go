//go:build unix

package runtime

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lastChange returns what changes with the file of a name, even if its size and modification time do not: its inode, and
// the time of the inode's last change.
func lastChange(name string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Stat(name, &stat); err != nil {
		return "", &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return fmt.Sprint(stat.Ino, " ", stat.Ctim.Nano()), nil
}
