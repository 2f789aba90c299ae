package program

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// jobFlags are a program's flags: the author's, and those of ours.
type jobFlags struct {
	set           *flag.FlagSet
	parsed        bool
	input, output string
	properties    map[string]string
}

// newJobFlags adds our flags to the author's.
func newJobFlags(set *flag.FlagSet) (*jobFlags, error) {
	if set.Parsed() {
		return nil, errors.New("the program has called flag.Parse, which is for mapreduce.Main to do")
	}
	for _, name := range []string{"input", "output", "D", "h", "help"} {
		if set.Lookup(name) != nil {
			return nil, fmt.Errorf("the program declares the flag -%s, which is mapreduce.Main's", name)
		}
	}
	f := &jobFlags{set: set, properties: make(map[string]string)}
	set.StringVar(&f.input, "input", "", "comma-separated `paths` to read: files, directories, globs; a comma in a name is written \\,")
	set.StringVar(&f.output, "output", "", "`directory` to write, which must not exist")
	set.Var((*propertyFlag)(f), "D", "set a property of the job, `name=value`, such as mapreduce.job.reduces=4; in a flow JOB:name=value sets that of one job, and wins; may be repeated")
	set.Init(set.Name(), flag.ContinueOnError)
	return f, nil
}

// parse reads a command line; what is wrong with it has been printed.
func (f *jobFlags) parse(args []string) error {
	f.parsed = true
	if err := f.set.Parse(args); err != nil {
		return err
	}
	if f.set.NArg() == 0 {
		return nil
	}
	err := fmt.Errorf("unexpected argument %q: input is given by -input, parameters by flags", f.set.Arg(0))
	fmt.Fprintln(f.set.Output(), err)
	f.set.Usage()
	return err
}

// propertyFlag is -D.
type propertyFlag jobFlags

func (f *propertyFlag) String() string { return "" }

func (f *propertyFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want name=value")
	}
	f.properties[name] = value
	return nil
}

// propertyPrefix marks a property among recorded flags.
const propertyPrefix = "D "

// record gives every flag's value, a property's as "D <name>".
func (f *jobFlags) record() map[string]string {
	all := make(map[string]string)
	f.set.VisitAll(func(fl *flag.Flag) {
		if fl.Name != "D" {
			all[fl.Name] = fl.Value.String()
		}
	})
	for name, value := range f.properties {
		all[propertyPrefix+name] = value
	}
	return all
}

// restore gives every flag the value that was recorded.
func (f *jobFlags) restore(from *wire.Program) error {
	if !f.parsed { // once: some flags add up what they are set to
		if err := f.parse(from.Args); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from.Flags)) {
		if strings.HasPrefix(name, propertyPrefix) {
			continue
		}
		fl := f.set.Lookup(name)
		if fl == nil {
			return fmt.Errorf("flag -%s is not declared in this process", name)
		}
		value := from.Flags[name]
		if fl.Value.String() == value {
			continue
		}
		if err := fl.Value.Set(value); err != nil {
			return fmt.Errorf("flag -%s=%q: %w", name, value, err)
		}
	}
	f.properties = make(map[string]string)
	for name, value := range from.Flags {
		if name, ok := strings.CutPrefix(name, propertyPrefix); ok {
			f.properties[name] = value
		}
	}
	return nil
}

// splitList divides a comma-separated list of paths. Commas within the braces of a
// glob do not divide, nor does one after a backslash, which the glob then takes.
func splitList(list string) (all []string, err error) {
	if list == "" {
		return nil, nil
	}
	depth, start := 0, 0
	for i := 0; i <= len(list); i++ {
		if i < len(list) {
			switch list[i] {
			case '\\':
				if i+1 < len(list) {
					i++
				}
				continue
			case '{':
				depth++
			case '}':
				depth--
			}
		}
		if i == len(list) || list[i] == ',' && depth <= 0 {
			if i == start {
				return nil, errors.New("a path is empty")
			}
			all = append(all, list[start:i])
			start = i + 1
		}
	}
	return all, nil
}
