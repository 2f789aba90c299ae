package tasktracker

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// adoptOrphans makes this process the parent of orphans, as a worker of ours.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// startContained starts a tracker as on a cluster.
func startContained(t *testing.T, cfg Config) *leader {
	t.Helper()
	staging, _, _ := stageHashed(t)
	if cfg.Isolation.Level == "" {
		cfg.Isolation.Level = isolation.None
	}
	cfg.ID, cfg.Dir = "t1", t.TempDir()
	if cfg.Staging == "" {
		cfg.Staging = "file://" + filepath.Dir(strings.TrimPrefix(staging, "file://"))
	}
	l := startUnregistered(t, cfg)
	l.connect(1)
	l.staging = staging
	return l
}

// TestEscapedProcess: a job starts a process in a session of its own, and its parent ends, so that it
// is in none of the worker's groups and no child of the worker. It ends with the attempt, whether the
// worker adopts orphans or not.
func TestEscapedProcess(t *testing.T) {
	l := startContained(t, Config{})
	for n := range 2 {
		r := l.succeed(wire.Map, n, doEscape)
		mustEnd(t, int(r.Counters.Get("pid", "escaped")))
	}
	l.succeed(wire.Map, 2, doSucceed) // the tracker still works
}

// TestContainedWorker: a worker on a cluster has only the usual variables of the tracker's
// environment and those that the operator names, no new privileges, and no core dumps.
func TestContainedWorker(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the operator")
	t.Setenv("QUERN_TLS_DIR", "of the tracker")
	t.Setenv("HADOOP_CONF_DIR", "/etc/hadoop")
	t.Setenv("LC_TIME", "C")
	t.Setenv("SITE_A", "a")
	t.Setenv("OTHER", "b")
	l := startContained(t, Config{Variables: []string{"SITE_*", "OTHER"}})
	got := l.succeed(wire.Map, 0, doReport).Counters
	for _, v := range []string{"QUERN_MODE=worker", "HADOOP_CONF_DIR=/etc/hadoop", "LC_TIME=C", "SITE_A=a", "OTHER=b"} {
		if got.Get("env", v) != 1 {
			t.Errorf("no variable %s", v)
		}
	}
	for v := range got["env"] {
		if strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "QUERN_") && v != "QUERN_MODE=worker" {
			t.Errorf("the worker has %s", v)
		}
	}
	if got.Get("status", "NoNewPrivs: 1") != 1 || got.Get("limits", "core") != 0 {
		t.Errorf("no_new_privs is not set, or cores have %d bytes: %v", got.Get("limits", "core"), got["status"])
	}
}
