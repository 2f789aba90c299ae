package streaming

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/quernmr/quern/internal/hadoopconf"
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/mapreduce/internal/property"
)

// Generic has Hadoop's generic options, which all of its programs take before their own.
type Generic struct {
	p  *parser
	fs string
}

// IsGeneric reports whether an argument is a generic option.
func IsGeneric(arg string) bool {
	all := options()
	i, _ := named(all, []string{arg})
	return i >= 0 && all[i].generic
}

// ParseGeneric parses the generic options, which come first, and returns the other arguments. Relative paths are below dir.
func ParseGeneric(args []string, dir string) (g *Generic, rest []string, err error) {
	job := &Job{Files: make(map[string]string), Archives: make(map[string]string), Properties: make(map[string]string)}
	p := &parser{Command: Command{Job: job}, dir: dir, shipped: make(map[string]string), configured: hadoopconf.Files{Current: property.CurrentName}}
	all := options()
	for len(args) > 0 {
		i, after := named(all, args)
		if i < 0 || !all[i].generic {
			break
		}
		if args, err = p.take(all[i], after); err != nil {
			return nil, nil, err
		}
	}
	return &Generic{p, p.defaultFS()}, args, nil
}

// defaultFS returns the value of -fs, unless -D sets its property. That of -conf is not among the properties yet.
func (p *parser) defaultFS() string {
	for name := range p.Job.Properties {
		if property.CurrentName(name) == property.DefaultFS {
			return ""
		}
	}
	return p.fs
}

// FS returns the value of -fs; empty: it is not given, or -D sets the same property. As in Hadoop, -D wins in any order, and
// -conf does not.
func (g *Generic) FS() string { return g.fs }

// JobTracker returns the value of -jt.
func (g *Generic) JobTracker() string { return g.p.jt }

// Given returns the properties of -conf and those of -D, by their current names, with their variables.
func (g *Generic) Given() (more, set map[string]string) {
	return g.p.configured.Values, g.p.overriding()
}

// Property returns a property of -D or -conf, without blanks around it; empty: it is not set.
func (g *Generic) Property(name string) string {
	given := g.p.given()
	return strings.TrimSpace(expand(given[property.CurrentName(name)], given))
}

// Command parses the options of Hadoop Streaming, which come after the generic ones.
func (g *Generic) Command(args []string) (*Command, error) {
	if len(args) == 0 {
		return nil, errors.New("no option of Streaming is given: give -input, -output, -mapper and -reducer")
	}
	p, all := g.p, options()
	for len(args) > 0 {
		i, after := named(all, args)
		name := strings.TrimLeft(args[0], "-")
		switch {
		case name == "" || name == args[0]:
			return nil, fmt.Errorf("unexpected argument %q", args[0])
		case i < 0:
			return nil, fmt.Errorf("unrecognized option -%s%s", name, spelling.DidYouMean("-", name, optionNames(all)))
		case all[i].generic:
			return nil, fmt.Errorf("unrecognized option -%s: it must come before the options of Streaming, such as -input", all[i].name)
		}
		var err error
		if args, err = p.take(all[i], after); err != nil {
			return nil, err
		}
	}
	return &p.Command, p.finish()
}

// configuration is -conf: a file of Hadoop's properties.
func (p *parser) configuration(name string) error {
	all, err := hadoopconf.Read(p.local(name))
	if err != nil {
		return fmt.Errorf("-conf: %w", err)
	}
	p.Notes = append(p.Notes, p.configured.Add(name, all)...)
	return nil
}

// given returns the properties by their current names. -D wins over -conf.
func (p *parser) given() map[string]string {
	given := make(map[string]string)
	maps.Copy(given, p.configured.Values)
	maps.Copy(given, p.overriding())
	return given
}

// overriding returns the properties of -D by their current names.
func (p *parser) overriding() map[string]string {
	set := make(map[string]string)
	for name, value := range p.Job.Properties {
		set[property.CurrentName(name)] = value
	}
	return set
}

// resolve adds the properties of -conf that -D has not set, and replaces variables.
func (p *parser) resolve() {
	given, all := p.given(), make(map[string]string)
	maps.Copy(all, p.configured.Values)
	for name := range p.Job.Properties {
		delete(all, property.CurrentName(name))
	}
	maps.Copy(all, p.Job.Properties)
	for name, value := range all {
		p.Job.Properties[name] = expand(value, given)
	}
}

// expand replaces variables by properties, which have their current names.
func expand(value string, given map[string]string) string {
	return hadoopconf.Expand(value, func(name string) (string, bool) {
		value, ok := given[property.CurrentName(name)]
		return value, ok
	})
}
