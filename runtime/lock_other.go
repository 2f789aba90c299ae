//go:build !unix

package runtime

import "errors"

// tryLock always fails: attempts run only on Unix.
func tryLock(name string) (unlock func() error, err error) {
	return nil, errors.New("this system has no locks of files: archives cannot be unpacked")
}
