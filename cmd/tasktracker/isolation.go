package main

import (
	"os"
	"path/filepath"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/isolation"
)

// jobIsolation checks -isolation and -job-paths.
func jobIsolation(level, shown, tlsDir string) (tasktracker.Isolation, error) {
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
	if tlsDir != "" {
		dir, err := filepath.Abs(tlsDir)
		if err != nil {
			return i, daemon.Usagef("-tls-dir: %v", err)
		}
		i.Hidden = append(i.Hidden, dir)
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		i.Hidden = append(i.Hidden, filepath.Join(state, "quern"))
	}
	return i, nil
}
