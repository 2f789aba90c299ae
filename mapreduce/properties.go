package mapreduce

import (
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
)

// Property is a setting of a job that Quern knows.
type Property struct {
	Name    string
	Default string
	Doc     string
}

// Properties lists the settings that a job may be given by -D or Job.Properties,
// by name. Other names that Hadoop knows are refused or have no effect here, see
// package internal/hadoop; names of any other kind, but not quern., are the job's own.
func Properties() []Property {
	var all []Property
	for _, p := range property.All() {
		all = append(all, Property{p.Name, p.Default, p.Doc})
	}
	return all
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
			return bridge.Usagef("-D %s=%s: there is no job %q, there is %s (a property's name has no colon)", given, value, job, strings.Join(names, ", "))
		case property.OfFlow(property.PresentName(name)):
			return bridge.Usagef("-D %s=%s: the property holds for all jobs of a flow: give it without the job's name", given, value)
		}
		own[job][name] = value
	}
	if c.all, err = c.settled(all); err != nil {
		return bridge.Usagef("%w", err)
	}
	c.own = make(map[string]map[string]string)
	for _, job := range names {
		if c.own[job], err = c.settled(own[job]); err != nil {
			return bridge.Usagef("-D %s:…: %w", job, err)
		}
	}
	return nil
}

// settled checks properties, gives them their present names and keeps the warnings.
func (c *compilation) settled(given map[string]string) (map[string]string, error) {
	settled, warnings, err := c.known.Settle(given)
	c.warnings = append(c.warnings, warnings...)
	return settled, err
}
