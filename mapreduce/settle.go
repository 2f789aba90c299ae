package mapreduce

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/hadoop"
)

// presentName is the name that Hadoop now has for a property.
func presentName(name string) string {
	if now, old := hadoop.Renamed()[name]; old {
		return now
	}
	return name
}

// ofFlow says whether a property holds for all jobs of a flow alike.
func ofFlow(name string) bool {
	return name == "mapreduce.job.priority" || name == "mapreduce.job.queuename" ||
		name == "quern.task.inprocess" || strings.HasPrefix(name, "quern.embedded.")
}

// divide puts the properties of -D apart: those of all jobs, and NAME of JOB:NAME by
// job. A property's name has no colon; a job's may.
func (c *compilation) divide() (err error) {
	all, own := make(map[string]string), make(map[string]map[string]string)
	var names []string
	for _, j := range c.jobs {
		names = append(names, j.Name)
		own[j.Name] = make(map[string]string)
	}
	for _, given := range slices.Sorted(maps.Keys(c.Settings.Properties)) {
		value, i := c.Settings.Properties[given], strings.LastIndexByte(given, ':')
		if i < 0 {
			all[given] = value
			continue
		}
		job, name := given[:i], given[i+1:]
		switch {
		case own[job] == nil:
			return usagef("-D %s=%s: there is no job %q, there is %s (a property's name has no colon)", given, value, job, strings.Join(names, ", "))
		case ofFlow(presentName(name)):
			return usagef("-D %s=%s: the property holds for all jobs of a flow: give it without the job's name", given, value)
		}
		own[job][name] = value
	}
	if c.all, err = c.settleProperties(all); err != nil {
		return err
	}
	c.own = make(map[string]map[string]string)
	for _, job := range names {
		if c.own[job], err = c.settleProperties(own[job]); err != nil {
			return usagef("-D %s:…: %w", job, err)
		}
	}
	return nil
}

// settleProperties gives properties their present names. What is wrong with them is
// an error of the command line, what is odd a warning.
func (c *compilation) settleProperties(given map[string]string) (map[string]string, error) {
	settled, by := make(map[string]string), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		now, value := presentName(name), given[name]
		if other, twice := by[now]; twice && settled[now] != value {
			return nil, usagef("properties %s=%s and %s=%s are one: %s", other, settled[now], name, value, now)
		}
		settled[now], by[now] = value, name
		warning, err := c.known.check(now, value)
		if now != name && err != nil {
			return nil, usagef("%s: %w", name, err)
		}
		if err != nil {
			return nil, usage(err)
		}
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
	}
	return settled, nil
}

// check gives what is wrong with a property, or odd.
func (known properties) check(name, value string) (warning string, err error) {
	if p := known[name]; p != nil {
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
		return "", fmt.Errorf("unknown property %s%s", name, known.like(name))
	case strings.HasPrefix(name, "mapreduce."), strings.HasPrefix(name, "mapred."):
		return fmt.Sprintf("property %s is not known to Quern and has no effect%s", name, known.like(name)), nil
	}
	return "", nil
}

// like suggests known names that end as name does, or begin so.
func (known properties) like(name string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, other := range slices.Sorted(maps.Keys(known)) {
		if strings.HasSuffix(other, "."+last) {
			return " (is " + other + " meant?)"
		}
	}
	return ""
}

// resolve puts together what a job's properties are; what is given later wins.
func (known properties) resolve(given ...map[string]string) map[string]string {
	all := make(map[string]string)
	for name, p := range known {
		all[name] = p.Default
	}
	for _, properties := range given {
		maps.Copy(all, properties)
	}
	return all
}
