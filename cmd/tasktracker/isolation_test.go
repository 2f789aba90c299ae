package main

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/cmd/internal/daemon"
)

// TestJobsDoNotSeeKeys: also the automatic authority of an account with / as its home directory, and the audit log with its rotated files.
func TestJobsDoNotSeeKeys(t *testing.T) {
	for _, env := range []map[string]string{{"HOME": "/"}, {"HOME": "/x", "XDG_STATE_HOME": "/.local/state"}} {
		i, err := jobIsolation("", "", &daemon.Security{TLSDir: "/keys", AuditLog: "/srv/audit"}, func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/keys", "/srv/audit", "/srv/audit.1", "/srv/audit.4", "/.local/state/quern"} {
			if !slices.Contains(i.Hidden, path) {
				t.Errorf("%v: %s is not in %v", env, path, i.Hidden)
			}
		}
	}
}
