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

// jobFlags are a program's flags: the author's and Main's.
type jobFlags struct {
	set           *flag.FlagSet
	parsed        bool
	input, output string
	session       string // of a driver
	quiet         bool   // of a driver
	properties    map[string]string
}

// newJobFlags adds the flags of mapreduce.Main, or of mapreduce.Drive, to the author's.
func newJobFlags(set *flag.FlagSet, caller string) (*jobFlags, error) {
	if set.Parsed() {
		return nil, fmt.Errorf("the program called flag.Parse before mapreduce.%s: remove the call, %s parses the flags", caller, caller)
	}
	names := []string{"input", "output", "D", "h", "help"}
	if caller == drives {
		names = append(names, "session", "quiet")
	}
	for _, name := range names {
		if set.Lookup(name) != nil {
			return nil, fmt.Errorf("the program declares the flag -%s, which mapreduce.%s declares: rename it", name, caller)
		}
	}
	f := &jobFlags{set: set, properties: make(map[string]string)}
	set.StringVar(&f.input, "input", "", "comma-separated `paths` to read: files, directories, globs; a comma in a name is written \\,")
	set.StringVar(&f.output, "output", "", "`directory` to write, which must not exist")
	if caller == drives {
		set.StringVar(&f.session, "session", "", "`name` of a session that keeps the results of the steps if the program fails: started again with it, the program takes up where it stopped")
		set.BoolVar(&f.quiet, "quiet", false, "print only errors, and what the program itself prints")
	}
	set.Var((*propertyFlag)(f), "D", "set a property of the job, `name=value`, such as mapreduce.job.reduces=4; in a flow, JOB:name=value sets it for one job, and wins; may be repeated")
	set.Init(set.Name(), flag.ContinueOnError)
	return f, nil
}

// parse parses a command line and prints errors itself.
func (f *jobFlags) parse(args []string) error {
	f.parsed = true
	if err := f.set.Parse(args); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -D"); ok {
			fmt.Fprintf(f.set.Output(), "write -D %s=VALUE, with a blank\n", name)
		}
		return err
	}
	if f.set.NArg() == 0 {
		return nil
	}
	err := fmt.Errorf("unexpected argument %q: give the input with -input, the output with -output, parameters with flags", f.set.Arg(0))
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

// record returns the value of every flag; properties have the name "D <name>".
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

// checkUnchanged refuses a flag that has changed since it was recorded: workers set its recorded value.
func (f *jobFlags) checkUnchanged(recorded map[string]string) error {
	for name, value := range f.record() {
		if was := recorded[name]; was != value {
			return fmt.Errorf("flag -%s has changed from %q to %q since the driver started, but workers use %[2]q: pass the value in the parameters of the definition", name, was, value)
		}
	}
	return nil
}

// restore sets every flag to its recorded value.
func (f *jobFlags) restore(from *wire.Program) error {
	if !f.parsed { // once, because list flags append each value
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

// SplitList splits a comma-separated list of paths. It does not split at commas within
// the braces of a glob, nor after a backslash, which stays for the glob.
func SplitList(list string) (all []string, err error) {
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

// EscapeGlob returns the glob that matches a path only.
func EscapeGlob(name string) string {
	const special = `*?[]{}\`
	var glob strings.Builder
	for _, b := range []byte(name) {
		if strings.IndexByte(special, b) >= 0 {
			glob.WriteByte('\\')
		}
		glob.WriteByte(b)
	}
	return glob.String()
}
