package process

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestControlGroupOfDeadTracker: KillLeftover kills the processes in a dead tracker's
// group.
func TestControlGroupOfDeadTracker(t *testing.T) {
	dir := t.TempDir()
	groups := &cgroups{stateDir: dir}
	cmd, group, ended, err := groups.start(func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = processAttributes()
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	if group == nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Skip("no control group can be made here")
	}
	if err := KillLeftover(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
	if _, err := os.Stat(groups.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its group was not removed: %v", err)
	}
}

// TestRemoveEmptyGroups: the start of a tracker removes the empty groups of others. A live
// tracker makes its group again.
func TestRemoveEmptyGroups(t *testing.T) {
	first, second := &cgroups{stateDir: t.TempDir()}, &cgroups{stateDir: t.TempDir()}
	group := first.add()
	if group == nil {
		t.Skip("no control group can be made here")
	}
	other := second.add()
	if other == nil {
		t.Fatal("the second tracker made no group")
	}
	if _, err := os.Stat(first.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty group was not removed: %v", err)
	}
	again := first.add()
	if again == nil {
		t.Fatal("the first tracker did not make its group again")
	}
	for _, err := range []error{group.handle.Close(), other.handle.Close(), again.handle.Close(), first.close(), second.close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestControlGroupFiles checks which files of a control group are read and written. Plain
// files take their place.
func TestControlGroupFiles(t *testing.T) {
	c := &cgroup{dir: t.TempDir(), memory: true}
	limit := core.Limit{Kind: wire.Reduce, Memory: 1 << 30}
	c.limit(&limit)
	for file, want := range map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1"} {
		if got, err := os.ReadFile(filepath.Join(c.dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	for count, want := range map[int]string{0: "", 3: "all of the 1024 MiB of memory they may have (mapreduce.reduce.memory.mb)"} {
		events := fmt.Sprintf("low 0\nhigh 0\nmax 12\noom 1\noom_kill %d\noom_group_kill 0\n", count)
		if err := os.WriteFile(filepath.Join(c.dir, "memory.events"), []byte(events), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := c.memoryExhausted(&limit); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%d kills: %q", count, got)
		}
	}
	c.limit(&core.Limit{})
	if got, err := os.ReadFile(filepath.Join(c.dir, "memory.max")); err != nil || string(got) != "max" {
		t.Errorf("unlimited: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte("12\n345\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.members()); got != "[12 345]" {
		t.Errorf("members are %s", got)
	}
}
