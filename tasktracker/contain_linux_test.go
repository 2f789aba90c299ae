package tasktracker

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// adoptOrphans makes this process the parent of orphans, as a worker of ours.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// awaitExit waits until a child has ended, and does not reap it.
func awaitExit(pid int) { unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) }

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

// TestHealthScriptLeavesProcess: a process that a health script leaves ends with the script, although no
// attempt ends then.
func TestHealthScriptLeavesProcess(t *testing.T) {
	dir := t.TempDir()
	script, pids := filepath.Join(dir, "script"), filepath.Join(dir, "pids")
	text := "#!/bin/sh\nsetsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >>" + pids + "'\n"
	if err := errors.Join(os.WriteFile(script, []byte(text), 0o700), os.WriteFile(pids, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	l := startContained(t, Config{Health: Health{Script: script, Interval: time.Millisecond, Timeout: deadline}})
	l.succeed(wire.Map, 0, doSucceed) // since the first worker, this process adopts orphans
	left := func() []string {
		text, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	before := len(left())
	for len(left()) == before {
		runtime.Gosched()
	}
	pid, err := strconv.Atoi(left()[before])
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, pid)
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
