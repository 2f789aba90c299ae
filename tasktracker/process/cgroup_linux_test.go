package process

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/cgroup"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestControlGroupOfDeadTracker: KillLeftover kills the processes in a dead tracker's
// groups.
func TestControlGroupOfDeadTracker(t *testing.T) {
	dir := t.TempDir()
	p := New(Config{Dir: dir, Groups: true, Maximum: Maximum{Memory: 1 << 30}})
	if found, err := p.OpenGroups(); p.groups.Groups == nil {
		t.Skipf("no control group can be made here: %v, %v", found, err)
	}
	record, err := os.ReadFile(filepath.Join(dir, GroupFile))
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, ended, err := p.groups.start(func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = processAttributes()
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	if err := KillLeftover(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, waited); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
	for group := range strings.Lines(string(record)) {
		if _, err := os.Stat(strings.TrimSpace(group)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its group was not removed: %v", err)
		}
	}
}

// TestMaximum: the operator's maximum holds where a job asks for more or for nothing, and is named.
func TestMaximum(t *testing.T) {
	all := Maximum{Memory: 4 << 20, Processes: 10, Cores: 3}
	strict := Maximum{Cores: 3, StrictCores: true}
	for _, c := range []struct {
		max    Maximum
		job    core.Limit
		want   cgroup.Limits
		memory string
		tasks  string
	}{
		{Maximum{}, core.Limit{}, cgroup.Limits{}, "mapreduce.map.memory.mb", "quern.task.processes"},
		{Maximum{}, core.Limit{Memory: 1 << 20, Processes: 1, Cores: 2}, cgroup.Limits{Memory: 1 << 20, Tasks: 320, Weight: 2}, "mapreduce.map.memory.mb", "quern.task.processes"},
		{all, core.Limit{}, cgroup.Limits{Memory: 4 << 20, Tasks: 896, Cores: 3}, "tasktracker -max-memory", "tasktracker -max-processes"},
		{all, core.Limit{Memory: 5 << 20, Processes: 11, Cores: 8}, cgroup.Limits{Memory: 4 << 20, Tasks: 896, Cores: 3, Weight: 8}, "tasktracker -max-memory", "tasktracker -max-processes"},
		{all, core.Limit{Kind: wire.Reduce, Memory: 4 << 20, Processes: 10}, cgroup.Limits{Memory: 4 << 20, Tasks: 896, Cores: 3}, "mapreduce.reduce.memory.mb", "quern.task.processes"},
		{strict, core.Limit{}, cgroup.Limits{Cores: 1}, "mapreduce.map.memory.mb", "quern.task.processes"},
		{strict, core.Limit{Cores: 2}, cgroup.Limits{Cores: 2, Weight: 2}, "mapreduce.map.memory.mb", "quern.task.processes"},
		{strict, core.Limit{Cores: 4}, cgroup.Limits{Cores: 3, Weight: 4}, "mapreduce.map.memory.mb", "quern.task.processes"},
		{Maximum{StrictCores: true}, core.Limit{Cores: 4}, cgroup.Limits{Cores: 4, Weight: 4}, "mapreduce.map.memory.mb", "quern.task.processes"},
	} {
		if c.job.Kind == 0 {
			c.job.Kind = wire.Map
		}
		l := c.max.Of(c.job)
		if got := l.group(); got != c.want || l.memoryName() != c.memory || l.processesName() != c.tasks {
			t.Errorf("%+v of %+v: %+v, %s, %s; want %+v, %s, %s", c.job, c.max, got, l.memoryName(), l.processesName(), c.want, c.memory, c.tasks)
		}
	}
}

// TestCoresNeedGroups: without control groups nothing limits cores, so the tracker does not start.
func TestCoresNeedGroups(t *testing.T) {
	for _, m := range []Maximum{{Cores: 1}, {StrictCores: true}} {
		if _, err := New(Config{Dir: t.TempDir(), Maximum: m}).OpenGroups(); err == nil || !strings.Contains(err.Error(), "-max-cores") {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if _, err := New(Config{Dir: t.TempDir(), Maximum: Maximum{Memory: 1, Processes: 1}}).OpenGroups(); err != nil {
		t.Error(err)
	}
}
