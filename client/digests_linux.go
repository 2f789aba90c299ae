package client

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// identify returns what a file is known by, and when it was last changed.
func identify(info fs.FileInfo) (identity string, changed time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}
	}
	changed = time.Unix(s.Ctim.Unix())
	if written := time.Unix(s.Mtim.Unix()); written.After(changed) {
		changed = written // in the future, if its user has set it
	}
	return fmt.Sprintf("%d %d %d %d %d", s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()), changed
}
