package property

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/hadoop"
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/wire"
)

// CurrentName returns Hadoop's current name of a property.
func CurrentName(name string) string {
	if current, old := hadoop.Renamed()[name]; old {
		return current
	}
	return name
}

// IsFlowWide reports whether a property must be the same for all jobs of a flow.
func IsFlowWide(name string) bool {
	return name == "mapreduce.job.priority" || name == "mapreduce.job.queuename" || name == wire.ViewACL || name == wire.ModifyACL ||
		IsEmbedded(name)
}

// IsEmbedded reports whether a property is about an embedded run, and changes no records.
func IsEmbedded(name string) bool {
	return name == InProcess || strings.HasPrefix(name, "quern.embedded.")
}

// Table has the properties by name.
type Table map[string]*Property

// NewTable returns the table of All.
func NewTable() Table {
	t := make(Table)
	for _, p := range All() {
		t[p.Name] = &p
	}
	return t
}

// Normalize replaces old names of properties by current ones and checks the values. It
// returns a warning for each property without effect.
func (t Table) Normalize(given map[string]string) (normalized map[string]string, warnings []string, err error) {
	normalized, givenName := make(map[string]string), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		current, value := CurrentName(name), given[name]
		if p := t[current]; p != nil && p.kind != textProperty {
			value = strings.TrimSpace(value) // as Hadoop does
			if lower := strings.ToLower(value); lower == "true" || lower == "false" {
				value = lower
			}
		}
		if other, twice := givenName[current]; twice && normalized[current] != value {
			return nil, nil, fmt.Errorf("properties %s=%s and %s=%s are two names of one property: %s", other, normalized[current], name, value, current)
		}
		normalized[current], givenName[current] = value, name
		warning, err := t.check(current, value)
		if err != nil && current != name {
			err = fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return normalized, warnings, nil
}

// check returns an error for a wrong property, or a warning for one without effect.
func (t Table) check(name, value string) (warning string, err error) {
	if p := t[name]; p != nil {
		return "", p.check(value)
	}
	rule, found := hadoop.Find(name)
	switch {
	case name == "":
		return "", errors.New("a property has no name")
	case strings.Contains(name, ":"):
		return "", fmt.Errorf("property %q has a colon: only -D takes JOB:NAME, for one job of a flow", name)
	case found && rule.Allows(value):
		return "", nil
	case found && rule.Refused:
		return "", fmt.Errorf("property %s=%s is refused: %s", name, value, rule.Reason)
	case found:
		return fmt.Sprintf("property %s has no effect: %s", name, rule.Reason), nil
	case strings.HasPrefix(name, "quern."):
		return "", fmt.Errorf("unknown property %s%s", name, t.suggestion(name))
	case strings.HasPrefix(name, "mapreduce."), strings.HasPrefix(name, "mapred."):
		return fmt.Sprintf("property %s is not known to Quern and has no effect%s", name, t.suggestion(name)), nil
	}
	return "", nil
}

// suggestion proposes a known property: one with at most two other bytes, the only one with the same
// name up to the last part, or one with the same last part.
func (t Table) suggestion(name string) string {
	dot := strings.LastIndexByte(name, '.') + 1
	var similar, siblings, sameLast []string
	for _, other := range slices.Sorted(maps.Keys(t)) {
		if spelling.Edits(name, other) <= 2 {
			similar = append(similar, other)
		}
		if strings.HasPrefix(other, name[:dot]) {
			siblings = append(siblings, other)
		}
		if strings.HasSuffix(other, "."+name[dot:]) {
			sameLast = append(sameLast, other)
		}
	}
	if len(siblings) > 1 {
		siblings = nil
	}
	if all := slices.Concat(similar, siblings, sameLast); len(all) > 0 {
		return " (did you mean " + all[0] + "?)"
	}
	return ""
}

// Resolve merges the properties of a job over the defaults; later maps win.
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
