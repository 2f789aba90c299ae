package hadoop

import (
	"strings"
	"testing"
)

// TestFiles: the tables have the form that their comments describe.
func TestFiles(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range fields(rulesFile) {
		if len(f) != 3 || f[0] != "refused" && f[0] != "idle" || strings.ContainsAny(f[1], " ") || f[2] == "" {
			t.Errorf("rule %q", f)
			continue
		}
		name, _, _ := strings.Cut(f[1], "=")
		if seen[name] {
			t.Errorf("two rules for %s", name)
		}
		seen[name] = true
		if current := Renamed()[name]; current != "" {
			t.Errorf("a rule for %s, which is %s now", name, current)
		}
	}
	for _, f := range fields(renamedFile) {
		if len(f) != 2 {
			t.Fatalf("renamed %q", f)
		}
		if newest := Renamed()[f[1]]; newest != "" {
			t.Errorf("%s is %s, which is %s", f[0], f[1], newest)
		}
	}
	if len(Rules()) < 100 || len(Renamed()) < 150 {
		t.Errorf("%d rules, %d old names", len(Rules()), len(Renamed()))
	}
}

// TestFind: of several matching rules, the one with the longest name counts.
func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"mapreduce.output.basename":               "mapreduce.output.basename",
		"mapreduce.map.skip.proc-count.auto-incr": "mapreduce.map.skip.proc-count.auto-incr",
		"mapreduce.map.skip.maxrecord":            "",
		"mapreduce.job.ubertask.enable":           "mapreduce.job.ubertask.enable",
		"mapreduce.shuffle.port":                  "mapreduce.shuffle*",
		"mapreduce.shuffle":                       "mapreduce.shuffle*",
		"mapreduce.odd":                           "",
		"my.own":                                  "",
	} {
		rule, ok := Find(name)
		if rule.Name != want || ok != (want != "") {
			t.Errorf("%s: rule %q, %v, want %q", name, rule.Name, ok, want)
		}
	}
	if rule, _ := Find("mapreduce.output.basename"); !rule.Allows("part") || rule.Allows("data") || rule.Allows("") {
		t.Errorf("rule %+v", rule)
	}
}
