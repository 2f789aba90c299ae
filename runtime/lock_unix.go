//go:build unix

package runtime

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file, which it makes. If it is locked, unlock is nil.
func tryLock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, f.Close()
		}
		return nil, errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	return f.Close, nil
}
