package mapreduce

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// program is a job's program in one process.
type program struct {
	build  func() (bridge.Compiler, error)
	worker bool // this process is a worker

	mu    sync.Mutex // guards flags, which build reads; workers within a process share them
	flags *jobFlags
}

// submission builds and describes the job, for a client.
func (p *program) submission(args []string) (*wire.Submission, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	compiled, err := p.compile(dir)
	if err != nil {
		return nil, err
	}
	for _, w := range compiled.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", w)
	}
	sub := &wire.Submission{Plan: compiled.Program.Plan}
	sub.Program = wire.Program{Args: args, Flags: p.flags.record(), Dir: dir}
	return sub, nil
}

func (p *program) compile(dir string) (*bridge.Compiled, error) {
	made, err := p.build()
	if err != nil {
		return nil, err
	}
	inputs, err := splitList(p.flags.input)
	if err != nil {
		return nil, usage(fmt.Errorf("-input %q: %w", p.flags.input, err))
	}
	compiled, err := made.Compile(bridge.Settings{
		Inputs:     inputs,
		Output:     p.flags.output,
		Properties: p.flags.properties,
		Dir:        dir,
	})
	if err == nil && p.flags.input != "" && !compiled.Given {
		jobs := compiled.Program.Plan.Jobs
		reads := fmt.Sprintf("job %s names what it reads", jobs[0].Name)
		if len(jobs) > 1 {
			reads = "each job of the flow names what it reads, or reads another job's result"
		}
		return nil, usagef("-input %s would be ignored: %s; leave -input out", p.flags.input, reads)
	}
	return compiled, err
}

// load builds the job again as the client's process did: with its arguments, and
// where a flag differs all the same (its default may depend on the time or the
// machine), with the value that the client saw.
func (p *program) load(sub *wire.Submission) (*mrruntime.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.flags.restore(&sub.Program); err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("set the job's flags: %w", err))
	}
	compiled, err := p.compile(sub.Program.Dir)
	if err != nil && p.worker {
		dir, _ := os.Getwd() // its name is for the message alone
		err = fmt.Errorf("%w (the client has built the job, but %s)", err, mrruntime.Elsewhere(sub, dir))
	}
	if err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("build the job: %w", err))
	}
	return compiled.Program, nil
}

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
