package cgroup

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
)

const mountinfo = `22 1 0:20 / / rw,relatime - ext4 /dev/root rw
30 22 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate
31 22 0:27 /docker/7 /sys/fs/cgroup/memory ro,nosuid shared:11 master:3 - cgroup cgroup rw,memory
32 22 0:28 / /sys/fs/my\040groups/cpu rw - cgroup cgroup rw,cpu,cpuacct
33 22 0:29 / short - cgroup
`

func TestParseMounts(t *testing.T) {
	want := []mount{
		{dir: "/sys/fs/cgroup/unified", root: "/", version: 2},
		{dir: "/sys/fs/cgroup/memory", root: "/docker/7", version: 1, controllers: []string{"rw", "memory"}},
		{dir: "/sys/fs/my groups/cpu", root: "/", version: 1, controllers: []string{"rw", "cpu", "cpuacct"}},
	}
	if got := parseMounts(mountinfo); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestOwnGroup: the directory of the own group, also in containers, where its path is that of the machine.
func TestOwnGroup(t *testing.T) {
	v2 := mount{dir: "/m", root: "/", version: 2}
	memoryAt := func(root string) mount {
		return mount{dir: "/m", root: root, version: 1, controllers: []string{"rw", memory}}
	}
	for _, c := range []struct {
		own   string
		mount mount
		want  string // empty: none
	}{
		{"0::/user.slice/a:b\n", v2, "/m/user.slice/a:b"},
		{"0::/\n", v2, "/m"},
		{"0::/../other\n", v2, ""}, // outside of the namespace
		{"4:memory:/a\n0::/\n", memoryAt("/"), "/m/a"},
		{"4:cpu,memory:/docker/7\n", memoryAt("/docker/7"), "/m"},
		{"4:cpu,memory:/docker/7/x\n", memoryAt("/docker/7"), "/m/x"},
		{"4:memory:/docker/77\n", memoryAt("/docker/7"), "/m"},
		{"4:cpu:/a\n0::/b\n", memoryAt("/"), ""},
		{"4:memory:/a\n", v2, ""},
		{"4:memory\nnonsense\n", memoryAt("/"), ""},
	} {
		if got, ok := c.mount.group(parseOwn(c.own)); got != c.want || ok != (c.want != "") {
			t.Errorf("%q in %+v: %q, %v, want %q", c.own, c.mount, got, ok, c.want)
		}
	}
}

func TestParseNumbers(t *testing.T) {
	events := "low 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 0\n"
	for name, want := range map[string]int64{"oom_kill": 3, "max": 12, "low": 0, "absent": 0} {
		if got := parseCount(events, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for text, want := range map[string]int64{"max\n": 0, "1073741824\n": 1 << 30, "9223372036854771712\n": 0, "-1": 0, "": 0} {
		if got := parseBytes(text); got != want {
			t.Errorf("%q are %d bytes, want %d", text, got, want)
		}
	}
	for text, want := range map[string]float64{"max 100000\n": 0, "250000 100000\n": 2.5, "-1 100000": 0, "100000 0": 0, "": 0} {
		quota, period, _ := strings.Cut(text, " ")
		if got := parseQuota(quota, period); got != want {
			t.Errorf("%q are %v cores, want %v", text, got, want)
		}
	}
	if got := parsePids("12\n0\n345\nx\n-1\n"); !reflect.DeepEqual(got, []int{12, 345}) {
		t.Errorf("processes %v", got)
	}
}

// FuzzFiles: files of the kernel are read without a panic, in proportion to their length, and a group is
// always below its mount point.
func FuzzFiles(f *testing.F) {
	f.Add(mountinfo)
	f.Add("0::/a\n4:cpu,memory:/b\n")
	f.Add("oom_kill 3\nmax 100000\n12\n")
	f.Add(`1 1 0:1 /\134 /m\ - cgroup2 c rw`)
	f.Fuzz(func(t *testing.T, text string) {
		var mounts []mount
		var own map[string]string
		membound.Bound{Free: 1 << 20, PerByte: 128}.Check(t, len(text), func() {
			mounts, own = parseMounts(text), parseOwn(text)
			parsePids(text)
			parseCount(text, "max")
		})
		for _, m := range mounts {
			dir, ok := m.group(own)
			if ok && dir != m.dir && !strings.HasPrefix(dir, strings.TrimSuffix(m.dir, "/")+"/") {
				t.Errorf("%+v has the group %q", m, dir)
			}
		}
		if n, q := parseBytes(text), parseQuota(text, text); n < 0 || q < 0 {
			t.Errorf("%d bytes, %v cores", n, q)
		}
	})
}
