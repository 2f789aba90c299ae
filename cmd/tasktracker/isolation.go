package main

import (
	"path/filepath"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/isolation"
)

// jobIsolation checks -isolation and -job-paths. It hides keys, the automatic authority and the audit log
// with its rotated files.
func jobIsolation(level, shown string, s *daemon.Security, getenv func(string) string) (tasktracker.Isolation, error) {
	i := tasktracker.Isolation{Level: isolation.Level(level), Shown: daemon.SplitList(shown)}
	switch i.Level {
	case "", isolation.None, isolation.Namespace:
	default:
		return i, daemon.Usagef("-isolation %s: want none or namespace", level)
	}
	for _, path := range i.Shown {
		if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
			return i, daemon.Usagef("-job-paths %s: want absolute paths, and not /", path)
		}
	}
	for flag, path := range map[string]string{"-tls-dir": s.TLSDir, "-audit-log": s.AuditLog} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return i, daemon.Usagef("%s: %v", flag, err)
		}
		if flag == "-audit-log" {
			i.Hidden = append(i.Hidden, audit.Files(abs)...)
			i.Replaced = audit.Files(abs)
			continue
		}
		i.Hidden = append(i.Hidden, abs)
	}
	if state, err := userstate.Dir(getenv); err == nil { // else this user has no automatic authority
		i.Hidden = append(i.Hidden, state)
	}
	return i, nil
}
