// Package hadoop knows the names of Hadoop's properties that Quern does not obey:
// which ones would change records or output and are refused, and which ones have no
// meaning here. It knows the old names of Hadoop's properties too. Both tables are
// files beside this one, and rules.txt says what its fields mean; package mapreduce
// holds properties against them, and docs/properties.md shows them.
//
// A property that Quern obeys has no rule: package mapreduce looks there first.
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

// Rule is what becomes of a property that Quern does not obey.
type Rule struct {
	Name    string   // of Hadoop's; with * at its end, of all that begin so
	Refused bool     // it would change records or output; else it has no meaning
	Same    []string // values that say what Quern does anyway
	Reason  string
}

// Rules lists the rules in the order of the file.
var Rules = sync.OnceValue(func() (rules []Rule) {
	for _, f := range fields(rulesFile) {
		name, same, _ := strings.Cut(f[1], "=")
		rule := Rule{Name: name, Refused: f[0] == "refused", Reason: f[2]}
		if same != "" {
			rule.Same = strings.Split(same, "|")
		}
		rules = append(rules, rule)
	}
	return rules
})

// Renamed gives the present name of every old one.
var Renamed = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for _, f := range fields(renamedFile) {
		names[f[0]] = f[1]
	}
	return names
})

// Find gives the rule for a property, by its present name: its own, or that of the
// longest beginning.
func Find(name string) (found Rule, ok bool) {
	for _, rule := range Rules() {
		if rule.Name == name {
			return rule, true
		}
		if begin, prefix := strings.CutSuffix(rule.Name, "*"); prefix && strings.HasPrefix(name, begin) && len(rule.Name) > len(found.Name) {
			found, ok = rule, true
		}
	}
	return found, ok
}

// Allows reports whether a value asks for what Quern does anyway.
func (r *Rule) Allows(value string) bool { return slices.Contains(r.Same, strings.TrimSpace(value)) }

func fields(file string) (all [][]string) {
	for line := range strings.Lines(file) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			all = append(all, strings.Split(line, "\t"))
		}
	}
	return all
}
