package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLimits checks that each limit is set, and that docs/reference.md has all of them.
func TestLimits(t *testing.T) {
	var l limits
	names := append(slices.Sorted(maps.Keys(l.numbers())), "task-memory", "job-lifetime")
	for i, name := range names[:len(names)-2] {
		if err := l.set(name + "=" + string(rune('1'+i%9))); err != nil || *l.numbers()[name] != 1+i%9 {
			t.Errorf("%s: %v, set to %d", name, err, *l.numbers()[name])
		}
	}
	if err := l.set("task-memory=2, job-lifetime=90m"); err != nil || l.core.Maximum.Memory != 2<<20 || l.core.Maximum.Lifetime != 90*time.Minute {
		t.Errorf("%v: %+v", err, l.core.Maximum)
	}
	page, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "#### Limits")
	section, _, _ = strings.Cut(section, "\n### ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	slices.Sort(names)
	if !slices.Equal(documented, names) {
		t.Errorf("docs/reference.md has the limits %q, want %q", documented, names)
	}
}
