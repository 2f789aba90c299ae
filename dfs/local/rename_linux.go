package local

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNoReplace renames unless the target exists. It returns errors.ErrUnsupported if the
// kernel or the file system cannot do this.
func renameNoReplace(from, to string) error {
	for {
		err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
			// EINVAL also means a directory moved below itself; the fallback refuses that
			// too.
			return errors.ErrUnsupported
		}
		return err
	}
}
