// Package hadoop has three tables of Hadoop's properties: rules.txt lists the properties that
// Quern refuses or ignores, renamed.txt the old names of properties, and used.txt those that
// people set most. Package mapreduce applies them, and docs/properties.md shows them.
//
// A property that Quern implements has no rule.
package hadoop

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed rules.txt
var rulesFile string

//go:embed renamed.txt
var renamedFile string

//go:embed used.txt
var usedFile string

// Rule says what Quern does with a property that it does not implement.
type Rule struct {
	Name     string   // Hadoop's name; a prefix if it ends in *
	Refused  bool     // the property would change records or output; false: it has no effect
	Accepted []string // values that request Quern's own behaviour
	Reason   string
}

// Rules lists the rules in the order of the file.
var Rules = sync.OnceValue(func() (rules []Rule) {
	for _, f := range fields(rulesFile) {
		name, accepted, _ := strings.Cut(f[1], "=")
		rule := Rule{Name: name, Refused: f[0] == "refused", Reason: f[2]}
		if accepted != "" {
			rule.Accepted = strings.Split(accepted, "|")
		}
		rules = append(rules, rule)
	}
	return rules
})

// Renamed returns the current name of each old name.
var Renamed = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for _, f := range fields(renamedFile) {
		names[f[0]] = f[1]
	}
	return names
})

// Used lists the properties that people set most, in groups.
func Used() (names []string) {
	for _, f := range fields(usedFile) {
		names = append(names, f[0])
	}
	return names
}

// Find returns the rule for a property's current name: a rule with this name, else the rule
// with the longest matching prefix.
func Find(name string) (found Rule, ok bool) {
	for _, rule := range Rules() {
		if rule.Name == name {
			return rule, true
		}
		if prefix, isPrefix := strings.CutSuffix(rule.Name, "*"); isPrefix && strings.HasPrefix(name, prefix) && len(rule.Name) > len(found.Name) {
			found, ok = rule, true
		}
	}
	return found, ok
}

// Allows reports whether a value requests Quern's own behaviour.
func (r *Rule) Allows(value string) bool {
	return slices.Contains(r.Accepted, strings.TrimSpace(value))
}

func fields(file string) (all [][]string) {
	for line := range strings.Lines(file) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			all = append(all, strings.Split(line, "\t"))
		}
	}
	return all
}
