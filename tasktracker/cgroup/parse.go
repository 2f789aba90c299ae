package cgroup

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mount is a mounted hierarchy.
type mount struct {
	dir         string
	root        string // the group that is at dir
	version     int
	controllers []string // version 1
}

// parseMounts reads the mounted hierarchies from a file mountinfo.
func parseMounts(text string) (all []mount) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(system) < 3 {
			continue
		}
		m := mount{dir: filepath.Clean(unescape(fields[4])), root: unescape(fields[3])}
		switch system[0] {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			m.version, m.controllers = 1, strings.Split(system[2], ",")
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// unescape replaces \040 and the like, as mountinfo has them in paths.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseOwn reads the groups of a process from its file cgroup: the path by controller. Version 2 has an
// empty name.
func parseOwn(text string) map[string]string {
	own := make(map[string]string)
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "/") {
			continue
		}
		if fields[0] == "0" && fields[1] == "" {
			own[""] = fields[2]
			continue
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			if name != "" {
				own[name] = fields[2]
			}
		}
	}
	return own
}

// group returns the directory of this process's group in a hierarchy. Not ok: it has none that can be
// seen, as in a container with a namespace of control groups.
func (m *mount) group(own map[string]string) (dir string, ok bool) {
	path, ok := own[""]
	if m.version == 1 {
		ok = false
		for _, name := range m.controllers {
			if path, ok = own[name]; ok {
				break
			}
		}
	}
	if !ok || slices.Contains(strings.Split(path, "/"), "..") {
		return "", false
	}
	if m.root != "/" {
		rest, below := strings.CutPrefix(path, m.root)
		if !below || rest != "" && rest[0] != '/' {
			rest = "" // a container: it sees its own group as the root
		}
		path = rest
	}
	return filepath.Join(m.dir, path), true
}

// parseCount returns the number after a name in a file such as memory.events; 0: the name is absent.
func parseCount(text, name string) int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return n
		}
	}
	return 0
}

// noLimit is below the numbers by which version 1 says that there is no limit.
const noLimit = 1 << 60

// parseBytes reads a limit of memory; 0: none.
func parseBytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= noLimit {
		return 0
	}
	return n
}

// parseQuota reads the cores of a quota: microseconds of processor time in a period; 0: no limit.
func parseQuota(quota, period string) float64 {
	q, err := strconv.ParseInt(strings.TrimSpace(quota), 10, 64)
	p, perr := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if err != nil || perr != nil || q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// parsePids reads the processes of a file cgroup.procs. Processes of other namespaces are 0 there.
func parsePids(text string) (list []int) {
	for field := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	return list
}
