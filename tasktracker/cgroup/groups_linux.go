package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Groups makes a group for each worker of a daemon; nil: none.
type Groups struct {
	cfg        Config
	v2         *hierarchy // nil: none
	v1         []*hierarchy
	lastNumber int
}

// Open makes the daemon's group, and says which controllers limit workers. It returns nil if no group can
// be made.
func Open(cfg Config) (*Groups, Found) {
	if cfg.File == "" {
		return nil, Found{Missing: "not configured"}
	}
	cfg.proc, cfg.system = cmp.Or(cfg.proc, "/proc/self"), cmp.Or(cfg.system, &kernel)
	g, found := &Groups{cfg: cfg}, Found{}
	places, err := g.places()
	if err != nil {
		return nil, Found{Missing: err.Error()}
	}
	var dirs []string
	for _, h := range places {
		dirs = append(dirs, h.dir)
	}
	// First, so that a crash leaves no unknown group.
	if err := os.WriteFile(cfg.File, []byte(strings.Join(dirs, "\n")+"\n"), 0o666); err != nil {
		return nil, Found{Missing: err.Error()}
	}
	var reasons []error
	for _, h := range places {
		wanted := slices.DeleteFunc(h.offered(), func(c string) bool { return *found.of(c) > 0 })
		if h.version == 1 && len(wanted) == 0 {
			continue
		}
		h.removeEmpty()
		if err := h.open(wanted); err != nil {
			reasons = append(reasons, err)
			continue
		}
		for _, c := range h.limits {
			*found.of(c) = h.version
		}
		if h.version == 2 {
			g.v2 = h
		} else {
			g.v1 = append(g.v1, h)
		}
	}
	if found.Memory == 0 || found.Pids == 0 || found.CPU == 0 {
		found.Missing = oneLine(cmp.Or(errors.Join(reasons...), errNotDelegated))
	}
	if g.v2 == nil && g.v1 == nil {
		_ = os.Remove(cfg.File) // the next start removes it, too
		return nil, found
	}
	return g, found
}

var errNotDelegated = errors.New("the controller is not delegated to this daemon's group")

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// of returns the version of a controller.
func (f *Found) of(controller string) *int {
	switch controller {
	case memory:
		return &f.Memory
	case pids:
		return &f.Pids
	default:
		return &f.CPU
	}
}

// places returns the hierarchies in which this process has a group, version 2 first.
func (g *Groups) places() (all []*hierarchy, err error) {
	mounts, err := os.ReadFile(filepath.Join(g.cfg.proc, "mountinfo"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(g.cfg.proc, "cgroup"))
	if err != nil {
		return nil, err
	}
	own := parseOwn(string(text))
	name := prefix + strconv.FormatUint(rand.Uint64(), 16)
	seen := make(map[string]bool)
	for _, m := range parseMounts(string(mounts)) {
		parent, ok := m.group(own)
		key := strings.Join(m.controllers, ",") // of a hierarchy: it may be mounted twice
		if !ok || seen[key] {
			continue
		}
		if above := filepath.Dir(parent); m.version == 2 && parent != m.dir && g.cfg.system.delegated(above) {
			parent = above
		}
		h := &hierarchy{mount: m, parent: parent, dir: filepath.Join(parent, name), weight: g.cfg.Cores, sys: g.cfg.system}
		if len(h.offered()) == 0 {
			continue
		}
		seen[key] = true
		all = append(all, h)
	}
	if all == nil {
		return nil, errors.New("this process sees no control group of its own")
	}
	// Version 2 first, then version 1 with pids: kill stops forks there.
	rank := func(h *hierarchy) int {
		switch {
		case h.version == 2:
			return 0
		case slices.Contains(h.controllers, pids):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *hierarchy) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

// offered returns the controllers that a hierarchy may have for groups.
func (h *hierarchy) offered() []string {
	all := []string{memory, pids, cpu}
	if h.version == 2 {
		return all // delegation decides
	}
	return slices.DeleteFunc(all, func(c string) bool { return !slices.Contains(h.controllers, c) })
}

// Add makes a worker's group; nil: it failed.
func (g *Groups) Add() *Group {
	if g == nil {
		return nil
	}
	g.lastNumber++
	c := &Group{groups: g, name: strconv.Itoa(g.lastNumber)}
	if g.v2 == nil {
		return c
	}
	dir, err := g.v2.add(c.name)
	if err != nil {
		return nil
	}
	c.dirs = []groupDir{{g.v2, dir}}
	if c.handle, err = os.Open(dir); err != nil {
		c.Remove()
		return nil
	}
	return c
}

// add makes a group in the daemon's group.
func (h *hierarchy) add(name string) (string, error) {
	dir := filepath.Join(h.dir, name)
	err := h.sys.mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && h.make() == nil { // another daemon took it for a dead one's
		err = h.sys.mkdir(dir)
	}
	return dir, err
}

// Close removes the daemon's groups, after the end of its workers.
func (g *Groups) Close() error {
	if g == nil {
		return nil
	}
	var err error
	for _, h := range g.all() {
		err = errors.Join(err, h.remove(h.dir, time.Now().Add(g.cfg.Wait)))
	}
	return errors.Join(err, os.Remove(g.cfg.File))
}

func (g *Groups) all() []*hierarchy {
	if g.v2 == nil {
		return g.v1
	}
	return append([]*hierarchy{g.v2}, g.v1...)
}

// remove kills the processes of a group and removes it with all groups below. Killed processes need
// some time to disappear; it waits for them until end.
func (h *hierarchy) remove(dir string, end time.Time) error {
	h.kill(dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, h.remove(filepath.Join(dir, e.Name()), end))
		}
	}
	for ; ; time.Sleep(time.Millisecond) {
		removeErr := h.sys.rmdir(dir)
		switch {
		case removeErr == nil || errors.Is(removeErr, fs.ErrNotExist):
			return err
		case time.Now().After(end):
			return errors.Join(err, fmt.Errorf("remove control group %s: %w", dir, removeErr))
		}
		h.kill(dir)
	}
}

// kill kills the processes of a group. Version 1 has no file for that: no process can start others
// meanwhile, if the group has the controller pids.
func (h *hierarchy) kill(dir string) {
	if h.version == 2 {
		_ = set(dir, "cgroup.kill", "1")
		return
	}
	if slices.Contains(h.controllers, pids) {
		_ = set(dir, "pids.max", "0")
	}
	for _, pid := range parsePids(get(dir, "cgroup.procs")) {
		// The process is still in the group after this, so it is the one of the handle.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if slices.Contains(parsePids(get(dir, "cgroup.procs")), pid) {
			_ = p.Kill()
		}
		_ = p.Release()
	}
}

// RemoveLeftover removes the groups that an earlier daemon recorded in a file, and kills their processes.
func RemoveLeftover(file string, wait time.Duration) error {
	return removeLeftover(file, wait, &kernel)
}

func removeLeftover(file string, wait time.Duration, sys *system) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		dir := strings.TrimSpace(line)
		// The prefix of its name protects groups that no daemon made.
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil || !strings.HasPrefix(filepath.Base(dir), prefix) {
			continue
		}
		h := &hierarchy{mount: mount{version: 1, controllers: []string{pids}}, sys: sys}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil {
			h.version = 2
		}
		if err := h.remove(dir, time.Now().Add(wait)); err != nil {
			return err
		}
	}
	return os.Remove(file)
}
