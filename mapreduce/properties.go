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

// Properties returns the settings for -D and Job.Properties, sorted by name. Other
// properties of Hadoop are refused or have no effect, see package internal/hadoop. All
// other names are the job's own, except names that begin with "quern.".
func Properties() []Property {
	var all []Property
	for _, p := range property.All() {
		all = append(all, Property{p.Name, p.Default, p.Doc})
	}
	return all
}

// splitProperties divides the properties of -D: NAME is for all jobs, JOB:NAME for one
// job. A job's name may contain a colon, a property's name may not.
func (c *compilation) splitProperties() (err error) {
	all, perJob := make(map[string]string), make(map[string]map[string]string)
	var names []string
	for _, j := range c.jobs {
		names = append(names, j.Name)
		perJob[j.Name] = make(map[string]string)
	}
	for _, given := range slices.Sorted(maps.Keys(c.Settings.Properties)) {
		value, i := c.Settings.Properties[given], strings.LastIndexByte(given, ':')
		if i < 0 {
			all[given] = value
			continue
		}
		job, name := given[:i], given[i+1:]
		switch {
		case perJob[job] == nil:
			return bridge.Usagef("-D %s=%s: there is no job %q; the jobs are %s (a property's name has no colon)", given, value, job, strings.Join(names, ", "))
		case property.IsFlowWide(property.CurrentName(name)):
			return bridge.Usagef("-D %s=%s: the property applies to all jobs of a flow: leave out the job's name", given, value)
		}
		perJob[job][name] = value
	}
	if c.forAll, err = c.checkProperties(all); err != nil {
		return bridge.Usagef("%w", err)
	}
	c.forJob = make(map[string]map[string]string)
	for _, job := range names {
		if c.forJob[job], err = c.checkProperties(perJob[job]); err != nil {
			return bridge.Usagef("-D %s:…: %w", job, err)
		}
	}
	return nil
}

// checkProperties checks properties, replaces old names, and keeps the warnings.
func (c *compilation) checkProperties(given map[string]string) (map[string]string, error) {
	normalized, warnings, err := c.propertyTable.Normalize(given)
	c.warnings = append(c.warnings, warnings...)
	return normalized, err
}
