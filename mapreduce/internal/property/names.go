package property

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/hadoop"
)

// PresentName is the name that Hadoop now has for a property.
func PresentName(name string) string {
	if now, old := hadoop.Renamed()[name]; old {
		return now
	}
	return name
}

// OfFlow says whether a property holds for all jobs of a flow alike.
func OfFlow(name string) bool {
	return name == "mapreduce.job.priority" || name == "mapreduce.job.queuename" ||
		name == "quern.task.inprocess" || strings.HasPrefix(name, "quern.embedded.")
}

// Table has the settings by their names.
type Table map[string]*Property

// NewTable is the table of All.
func NewTable() Table {
	t := make(Table)
	for _, p := range All() {
		t[p.Name] = &p
	}
	return t
}

// Settle gives properties their present names and checks their values. Warnings tell of
// what has no effect.
func (t Table) Settle(given map[string]string) (settled map[string]string, warnings []string, err error) {
	settled, by := make(map[string]string), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		now, value := PresentName(name), given[name]
		if other, twice := by[now]; twice && settled[now] != value {
			return nil, nil, fmt.Errorf("properties %s=%s and %s=%s are one: %s", other, settled[now], name, value, now)
		}
		settled[now], by[now] = value, name
		warning, err := t.check(now, value)
		if err != nil && now != name {
			err = fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return settled, warnings, nil
}

// check gives what is wrong with a property, or odd.
func (t Table) check(name, value string) (warning string, err error) {
	if p := t[name]; p != nil {
		return "", p.check(value)
	}
	rule, found := hadoop.Find(name)
	switch {
	case name == "":
		return "", errors.New("a property has no name")
	case strings.Contains(name, ":"):
		return "", fmt.Errorf("property %q has a colon: JOB:NAME is for -D, where it names one job of a flow", name)
	case found && rule.Allows(value):
		return "", nil
	case found && rule.Refused:
		return "", fmt.Errorf("property %s=%s is refused: %s", name, value, rule.Reason)
	case found:
		return fmt.Sprintf("property %s has no effect: %s", name, rule.Reason), nil
	case strings.HasPrefix(name, "quern."):
		return "", fmt.Errorf("unknown property %s%s", name, t.like(name))
	case strings.HasPrefix(name, "mapreduce."), strings.HasPrefix(name, "mapred."):
		return fmt.Sprintf("property %s is not known to Quern and has no effect%s", name, t.like(name)), nil
	}
	return "", nil
}

// like suggests known names that end as name does, or begin so.
func (t Table) like(name string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, other := range slices.Sorted(maps.Keys(t)) {
		if strings.HasSuffix(other, "."+last) {
			return " (is " + other + " meant?)"
		}
	}
	return ""
}

// Resolve puts together what a job's properties are; what is given later wins.
func (t Table) Resolve(given ...map[string]string) map[string]string {
	all := make(map[string]string)
	for name, p := range t {
		all[name] = p.Default
	}
	for _, properties := range given {
		maps.Copy(all, properties)
	}
	return all
}
