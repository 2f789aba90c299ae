package tasktracker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/wire"
)

// controlGroup returns the control group of a tracker; empty: it has none.
func controlGroup(l *leader) string {
	text, err := os.ReadFile(l.path(process.GroupFile))
	group, _, _ := strings.Cut(string(text), "\n") // the first one may be of version 2
	if _, e := os.Stat(filepath.Join(group, "cgroup.kill")); err != nil || e != nil {
		return ""
	}
	return group
}

// TestControlGroup: all processes that a worker starts end with it, in any process group.
func TestControlGroup(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	id := l.launch(wire.Map, 0, doFork)
	await(l, func(h *wire.Heartbeat) bool { return len(h.Attempts) > 0 })
	group := controlGroup(l)
	if group == "" {
		t.Skip("no control group can be made here")
	}
	stderr := filepath.Join(core.LogPath(l.dir, id), "stderr")
	var children []string
	waitUntil(t, "40 children", func() bool {
		text, err := os.ReadFile(stderr)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		children = strings.Fields(string(text))
		return len(children) >= 40
	})
	l.send(&wire.Kill{Epoch: 1, Attempt: id, Reason: "not wanted"})
	l.final(id, wire.AttemptKilled)
	for _, child := range children {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		mustBeGone(t, pid) // before the report, also outside the process group
	}
	l.succeed(wire.Map, 1, doSucceed)
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{group, l.path(process.GroupFile)} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was not removed: %v", path, err)
		}
	}
}
