//go:build unix && !linux

package local

import (
	"syscall"
	"time"
)

func accessed(s *syscall.Stat_t) time.Time { return time.Unix(s.Atimespec.Unix()) }
