package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fake is a directory tree like the kernel's: a new group has files, and a group with processes cannot be
// removed.
type fake struct {
	t       *testing.T
	dir     string
	v2      []string // controllers of version 2
	kill    bool     // version 2 can kill groups
	refused map[int]error
	entered []int // versions
}

// newFake mounts version 2 with some controllers, and version 1 of others.
func newFake(t *testing.T, v2, v1 string) (*fake, Config) {
	k := &fake{t: t, dir: t.TempDir(), v2: strings.Fields(v2), kill: true, refused: make(map[int]error)}
	mounts, own := "", ""
	if v2 != "" {
		mounts += "1 1 0:1 / " + k.dir + "/2 rw - cgroup2 c rw\n"
		own += "0::/svc\n"
		k.mkdirAll("2/svc")
	}
	for _, c := range strings.Fields(v1) {
		mounts += "1 1 0:1 / " + k.dir + "/" + c + " rw - cgroup c rw," + c + "\n"
		own += "1:" + c + ":/svc\n"
		k.mkdirAll(c + "/svc")
	}
	k.write("mountinfo", mounts)
	k.write("cgroup", own)
	return k, Config{File: filepath.Join(k.dir, "record"), Cores: 8, Children: func(int) []int { return nil }, Wait: time.Second, proc: k.dir,
		system: &system{mkdir: k.mkdir, rmdir: k.rmdir, enter: k.enter, delegated: func(string) bool { return false }}}
}

func (k *fake) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o666); err != nil {
		k.t.Fatal(err)
	}
}

func (k *fake) mkdirAll(name string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Join(k.dir, name), 0o777); err != nil {
		k.t.Fatal(err)
	}
}

// hierarchy returns the controllers of the hierarchy of a directory, and its version.
func (k *fake) hierarchy(dir string) ([]string, int) {
	rel, err := filepath.Rel(k.dir, dir)
	if err != nil {
		k.t.Fatal(err)
	}
	top, _, _ := strings.Cut(rel, "/")
	if top == "2" {
		return k.v2, 2
	}
	return []string{top}, 1
}

func (k *fake) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	controllers, version := k.hierarchy(dir)
	files := []string{"cgroup.procs", "tasks"}
	if version == 2 {
		files = []string{"cgroup.procs", "cgroup.events", "cgroup.subtree_control"}
		if k.kill {
			files = append(files, "cgroup.kill")
		}
	}
	for _, c := range controllers {
		switch c + strconv.Itoa(version) {
		case "memory2":
			files = append(files, "memory.max", "memory.swap.max", "memory.oom.group", "memory.events", "memory.peak")
		case "memory1":
			files = append(files, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes")
		case "pids1", "pids2":
			files = append(files, "pids.max", "pids.events")
		case "cpu2":
			files = append(files, "cpu.max", "cpu.weight")
		case "cpu1":
			files = append(files, "cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us")
		}
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (k *fake) rmdir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			return syscall.EBUSY
		}
	}
	for _, pid := range parsePids(get(dir, "cgroup.procs")) {
		if get(dir, "cgroup.kill") == "" && syscall.Kill(pid, 0) == nil {
			return syscall.EBUSY
		}
	}
	return os.RemoveAll(dir)
}

func (k *fake) enter(version int, _, _ string) error {
	k.entered = append(k.entered, version)
	return k.refused[version]
}

// TestFound: what limits workers is found by performing it, version 2 before version 1.
func TestFound(t *testing.T) {
	for _, c := range []struct {
		name, v2, v1 string
		change       func(*fake)
		want         string
	}{
		{"version 2", "memory pids cpu", "", nil, "cgroup v2: memory, pids, cpu"},
		{"partly delegated", "memory pids", "", nil, "cgroup v2: memory, pids; without cpu: the controller is not delegated to this daemon's group"},
		{"version 1", "", "memory pids cpu", nil, "cgroup v1: memory, pids, cpu"},
		{"both", "memory", "cpu pids memory", nil, "cgroup v2: memory; cgroup v1: pids, cpu"},
		{"version 2 only kills", "hugetlb", "memory", nil, "cgroup v1: memory; without pids, cpu: the controller is not delegated to this daemon's group"},
		{"no process gets in", "memory pids cpu", "", func(k *fake) { k.refused[2] = syscall.ENOSYS }, "no cgroup: function not implemented"},
		{"no process gets in, but in version 1", "memory pids cpu", "memory pids cpu", func(k *fake) { k.refused[2] = syscall.ENOSYS }, "cgroup v1: memory, pids, cpu"},
		{"no thread gets in", "memory", "pids", func(k *fake) { k.refused[1] = syscall.EACCES }, "cgroup v2: memory; without pids, cpu: permission denied"},
		{"old kernel", "memory pids cpu", "", func(k *fake) { k.kill = false }, "no cgroup: this kernel cannot kill control groups: "},
		{"not mounted", "", "", nil, "no cgroup: this process sees no control group of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, cfg := newFake(t, c.v2, c.v1)
			if c.change != nil {
				c.change(k)
			}
			g, found := Open(cfg)
			if got := found.String(); !strings.HasPrefix(got, c.want) || got != c.want && !strings.HasSuffix(c.want, ": ") {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if none := strings.HasPrefix(c.want, "no "); (g == nil) != none {
				t.Errorf("groups are %v", g)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(k.dir + "/*/svc/" + prefix + "*"); left != nil {
				t.Errorf("groups are left: %v", left)
			}
			if _, err := os.Stat(cfg.File); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the record is left: %v", err)
			}
		})
	}
}

// TestGroups: the files of a worker's group, by version.
func TestGroups(t *testing.T) {
	limits := Limits{Memory: 1 << 30, Tasks: 320, Cores: 2, Weight: 3}
	unlimited := Limits{Weight: 1}
	for _, c := range []struct {
		v2, v1        string
		files, lifted map[string]string
	}{
		{"memory pids cpu", "", map[string]string{
			"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "320",
			"cpu.max": "200000 100000", "cpu.weight": "300",
		}, map[string]string{"memory.max": "max", "pids.max": "max", "cpu.max": "max 100000", "cpu.weight": "100"}},
		{"", "memory pids cpu", map[string]string{
			"memory.limit_in_bytes": "1073741824", "memory.memsw.limit_in_bytes": "1073741824", "pids.max": "320",
			"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000", "cpu.shares": "3072", "cgroup.procs": "8",
		}, map[string]string{"memory.limit_in_bytes": "-1", "memory.memsw.limit_in_bytes": "-1", "pids.max": "max", "cpu.cfs_quota_us": "-1", "cpu.shares": "1024"}},
	} {
		k, cfg := newFake(t, c.v2, c.v1)
		cfg.Children = func(pid int) []int { return map[int][]int{5: {6, 7}, 7: {8, 5}}[pid] }
		cfg.Wait = 0
		g, _ := Open(cfg)
		w := g.Add()
		w.Started()
		check := func(when string, want map[string]string) {
			t.Helper()
			for name, value := range want {
				found, _ := filepath.Glob(k.dir + "/*/svc/" + prefix + "*/1/" + name)
				if len(found) == 0 {
					t.Errorf("%s: no group has %s", when, name)
				}
				for _, file := range found {
					if got, err := os.ReadFile(file); err != nil || string(got) != value {
						t.Errorf("%s: %s is %q, want %q: %v", when, file, got, value, err)
					}
				}
			}
		}
		if err := w.Limit(5, unlimited); err != nil {
			t.Error(err)
		}
		if pids, ok := w.Members(); ok != (c.v2 != "") {
			t.Errorf("before a limit its members are %v, %v", pids, ok)
		}
		if err := w.Limit(5, limits); err != nil {
			t.Error(err)
		}
		check("limited", c.files)
		if err := w.Limit(5, unlimited); err != nil {
			t.Error(err)
		}
		check("unlimited", c.lifted)
		// All workers together have the weight of the machine's cores.
		for name, want := range map[string]string{"cpu.weight": "800", "cpu.shares": "8192"} {
			for _, file := range globbed(k.dir + "/*/svc/" + prefix + "*/" + name) {
				if got, _ := os.ReadFile(file); string(got) != want {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		}
	}
}

func globbed(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

// TestExhausted: what the kernel did before the last Limit does not count.
func TestExhausted(t *testing.T) {
	for _, c := range []struct{ v2, v1, events, peak string }{
		{"memory pids cpu", "", "memory.events", "memory.peak"},
		{"", "memory pids cpu", "memory.oom_control", "memory.max_usage_in_bytes"},
	} {
		k, cfg := newFake(t, c.v2, c.v1)
		g, _ := Open(cfg)
		w := g.Add()
		w.Started()
		defer w.Remove()
		limits := Limits{Memory: 1 << 20, Tasks: 100}
		write := func(name, text string) {
			t.Helper()
			for _, file := range globbed(k.dir + "/*/svc/" + prefix + "*/1/" + name) {
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Limit(1<<30, limits); err != nil {
			t.Fatal(err)
		}
		if got := w.Exhausted(); got != (Exhausted{}) {
			t.Errorf("at first: %+v", got)
		}
		write(c.events, "oom 0\noom_kill 1\n")
		if got := w.Exhausted(); c.v2 != "" && got != (Exhausted{}) {
			t.Errorf("after a kill for the memory of a group around it: %+v", got)
		}
		write(c.events, "oom 4\noom_kill 2\n")
		write(c.peak, "1000000\n")
		if got := w.Exhausted(); got != (Exhausted{Memory: true, Peak: 1_000_000}) {
			t.Errorf("after a kill: %+v", got)
		}
		write("pids.events", "max 7\n")
		if got := w.Exhausted(); !got.Tasks {
			t.Errorf("after a refused process: %+v", got)
		}
		if err := w.Limit(1<<30, limits); err != nil {
			t.Fatal(err)
		}
		if got := w.Exhausted(); got != (Exhausted{}) {
			t.Errorf("the next attempt is blamed: %+v", got)
		}
	}
}

// TestAgain: another daemon has removed this one's empty group. The next worker has one again.
func TestAgain(t *testing.T) {
	for _, versions := range [][2]string{{"memory pids cpu", ""}, {"", "memory pids cpu"}} {
		k, cfg := newFake(t, versions[0], versions[1])
		first, _ := Open(cfg)
		for _, file := range globbed(k.dir + "/2/svc/" + prefix + "*/cgroup.events") {
			if err := os.WriteFile(file, []byte("populated 0\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cfg.File += "2"
		second, _ := Open(cfg)
		if n := len(globbed(k.dir + "/*/svc/" + prefix + "*")); n != len(second.all()) {
			t.Errorf("%d groups of daemons after the second start, want %d", n, len(second.all()))
		}
		w := first.Add()
		if w == nil {
			t.Fatal("no group")
		}
		w.Started()
		if err := w.Limit(1<<30, Limits{Tasks: 1}); err != nil {
			t.Error(err)
		}
		if len(w.dirs) == 0 {
			t.Error("it is in no group")
		}
	}
}

// TestRemoveLeftover: a dead daemon's groups are removed, with their processes, and no others.
func TestRemoveLeftover(t *testing.T) {
	k, cfg := newFake(t, "", "pids")
	if g, found := Open(cfg); g == nil {
		t.Fatal(found)
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(k.dir, "pids", "svc", "system.slice")
	for _, dir := range []string{globbed(k.dir + "/pids/svc/" + prefix + "*")[0] + "/1", other} {
		if err := k.mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	leftover := globbed(k.dir + "/pids/svc/" + prefix + "*/1")[0]
	if err := set(leftover, "cgroup.procs", strconv.Itoa(child.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.File, append(record, other+"\n/nowhere/"+prefix+"1\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	if err := removeLeftover(cfg.File, 30*time.Second, cfg.system); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
	if left := globbed(k.dir + "/pids/svc/*"); !slices.Equal(left, []string{other}) {
		t.Errorf("groups are left: %v", left)
	}
	if _, err := os.Stat(cfg.File); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record is left: %v", err)
	}
}

// TestInherited: the lowest limits of the own groups and those above hold.
func TestInherited(t *testing.T) {
	k, _ := newFake(t, "memory", "cpu")
	k.mkdirAll("2/svc/a")
	k.write("cgroup", "0::/svc/a\n1:cpu:/svc\n")
	k.write("2/svc/a/memory.max", "max\n")
	k.write("2/svc/memory.max", "1073741824\n")
	k.write("2/memory.max", "2147483648\n")
	k.write("2/svc/pids.max", "100\n")
	k.write("2/svc/cpu.max", "400000 100000\n")
	k.write("cpu/svc/cpu.cfs_quota_us", "150000\n")
	k.write("cpu/svc/cpu.cfs_period_us", "100000\n")
	got := inherited(k.dir)
	if got.Memory != 1<<30 || got.Cores != 1.5 {
		t.Errorf("%d bytes and %v cores, want 1 GiB and 1.5", got.Memory, got.Cores)
	}
	want := "memory.max 1024 MiB of control group " + k.dir + "/2/svc"
	if !slices.Contains(got.Texts, want) || len(got.Texts) != 3 {
		t.Errorf("limits %q, want %q too", got.Texts, want)
	}
}
