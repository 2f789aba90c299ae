package streaming

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/archive"
	"github.com/quernmr/quern/internal/hadoopconf"
	"github.com/quernmr/quern/mapreduce/internal/property"
)

// ErrHelp reports -help or -info.
var ErrHelp = errors.New("help is asked for")

// ErrNoValue reports an option at the end that needs a value.
var ErrNoValue = errors.New("needs a value")

// Command is a command line of Hadoop Streaming.
type Command struct {
	Job        *Job
	Background bool     // -background
	Verbose    bool     // -verbose: print the properties
	Notes      []string // options without effect
}

// option is an option of the command line.
type option struct {
	name    string
	value   bool // a value follows
	many    bool // more values may follow
	generic bool // comes before the others
	set     func(p *parser, value string) error
}

// refuse refuses an option.
func refuse(name, reason string) option {
	return option{name: name, value: true, set: func(_ *parser, value string) error {
		return fmt.Errorf("-%s %s is refused: %s", name, value, reason)
	}}
}

// into stores the value of an option.
func into(name string, field func(j *Job) *string) option {
	return option{name: name, value: true, set: func(p *parser, value string) error {
		to := field(p.Job)
		if *to != "" && *to != value {
			return fmt.Errorf("-%s is given twice: %s and %s", name, *to, value)
		}
		*to = value
		return nil
	}}
}

// options lists the options, with the generic ones first.
func options() []option {
	libjars := refuse("libjars", "Quern runs no Java")
	libjars.generic = true
	return []option{
		{name: "D", value: true, generic: true, set: (*parser).property},
		{name: "conf", value: true, generic: true, set: (*parser).configuration},
		{name: "files", value: true, generic: true, set: func(p *parser, list string) error { return p.files(strings.Split(list, ",")) }},
		{name: "archives", value: true, generic: true, set: func(p *parser, list string) error { return p.archives(strings.Split(list, ",")) }},
		libjars,
		{name: "fs", value: true, generic: true, set: func(p *parser, url string) error {
			p.fs = url
			return nil
		}},
		{name: "jt", value: true, generic: true, set: func(p *parser, address string) error {
			p.jt = address
			return nil
		}},

		{name: "input", value: true, many: true, set: func(p *parser, value string) error {
			p.Job.Inputs = append(p.Job.Inputs, value)
			return nil
		}},
		into("output", func(j *Job) *string { return &j.Output }),
		into("mapper", func(j *Job) *string { return &j.Mapper }),
		into("combiner", func(j *Job) *string { return &j.Combiner }),
		into("reducer", func(j *Job) *string { return &j.Reducer }),
		into("inputformat", func(j *Job) *string { return &j.InputFormat }),
		into("outputformat", func(j *Job) *string { return &j.OutputFormat }),
		into("partitioner", func(j *Job) *string { return &j.Partitioner }),
		{name: "numReduceTasks", value: true, set: func(p *parser, value string) error {
			if n, err := strconv.Atoi(value); err != nil || n < 0 {
				return fmt.Errorf("-numReduceTasks %s: must be a whole number from 0", value)
			}
			if p.reduces != "" && p.reduces != value {
				return fmt.Errorf("-numReduceTasks is given twice: %s and %s", p.reduces, value)
			}
			p.reduces = value
			return nil
		}},
		{name: "cmdenv", value: true, set: (*parser).variables},
		{name: "file", value: true, many: true, set: func(p *parser, value string) error { return p.files([]string{value}) }},
		{name: "cacheFile", value: true, many: true, set: cached("cacheFile", (*parser).files)},
		{name: "cacheArchive", value: true, many: true, set: cached("cacheArchive", (*parser).archives)},
		{name: "jobconf", value: true, set: (*parser).property},
		{name: "lazyOutput", set: func(p *parser, _ string) error {
			p.Job.Lazy = true
			return nil
		}},
		{name: "background", set: func(p *parser, _ string) error {
			p.Background = true
			return nil
		}},
		into("io", func(j *Job) *string { return &j.io }),
		into("inputreader", func(j *Job) *string { return &j.reader }),
		{name: "mapdebug", value: true, set: func(p *parser, script string) error { return p.property(mapDebug + "=" + script) }},
		{name: "reducedebug", value: true, set: func(p *parser, script string) error { return p.property(reduceDebug + "=" + script) }},
		{name: "additionalconfspec", value: true, set: (*parser).configuration},
		refuse("dfs", "a path without scheme is local; write hdfs://HOST:PORT/path"),
		{name: "verbose", set: func(p *parser, _ string) error {
			p.Verbose = true
			return nil
		}},
		{name: "debug", set: nothing},
		{name: "info", set: help}, {name: "help", set: help}, {name: "h", set: help},
	}
}

func nothing(*parser, string) error { return nil }

func help(*parser, string) error { return ErrHelp }

// parser is the state of Parse.
type parser struct {
	Command
	dir     string
	reduces string // -numReduceTasks
	shipped map[string]string

	fs, jt     string           // -fs, -jt
	configured hadoopconf.Files // of -conf
}

// Parse parses a command line of Hadoop Streaming without the jar. Relative paths are below dir.
func Parse(args []string, dir string) (*Command, error) {
	g, args, err := ParseGeneric(args, dir)
	switch {
	case err != nil:
		return nil, err
	case g.p.fs != "":
		return nil, fmt.Errorf("-fs %s is refused: a path without scheme is local; write hdfs://HOST:PORT/path", g.p.fs)
	case g.JobTracker() != "":
		return nil, fmt.Errorf("-jt %s is refused: name the job tracker by -jobtracker", g.JobTracker())
	}
	return g.Command(args)
}

// take sets an option to the values that the arguments begin with. It returns the arguments after them.
func (p *parser) take(o option, args []string) (rest []string, err error) {
	value := ""
	if o.value {
		if len(args) == 0 {
			return nil, fmt.Errorf("option -%s %w", o.name, ErrNoValue)
		}
		value, args = args[0], args[1:]
	}
	if err := o.set(p, value); err != nil {
		return nil, err
	}
	for o.many && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if err := o.set(p, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	return args, nil
}

// named returns the index of the option that the arguments begin with, and the arguments after its name; negative: none.
func named(all []option, args []string) (i int, rest []string) {
	name, isOption := strings.CutPrefix(args[0], "-")
	if !isOption {
		return -1, args
	}
	name, args = strings.TrimPrefix(name, "-"), args[1:]
	if i = find(all, name); i < 0 && len(name) > 1 && name[0] == 'D' { // -Dname=value
		return find(all, "D"), append([]string{name[1:]}, args...)
	}
	return i, args
}

func find(all []option, name string) int {
	return slices.IndexFunc(all, func(o option) bool { return o.name == name })
}

func optionNames(all []option) (names []string) {
	for _, o := range all {
		names = append(names, o.name)
	}
	return names
}

// Completions lists the options, with their dashes.
func Completions() (names []string) {
	for _, name := range optionNames(options()) {
		names = append(names, "-"+name)
	}
	return names
}

// property is -D.
func (p *parser) property(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("-D %s: want NAME=VALUE", text)
	}
	p.set(name, value)
	return nil
}

// set sets a property. A later value wins, also under another name.
func (p *parser) set(name, value string) {
	for old := range p.Job.Properties {
		if property.CurrentName(old) == property.CurrentName(name) {
			delete(p.Job.Properties, old)
		}
	}
	p.Job.Properties[name] = value
}

// variables is -cmdenv: blanks separate variables, and other white space belongs to values.
func (p *parser) variables(text string) error {
	for v := range strings.SplitSeq(text, " ") {
		name, _, ok := strings.Cut(v, "=")
		if ok && name != "" {
			p.Job.Environment = append(p.Job.Environment, v)
		}
	}
	return nil
}

func (p *parser) local(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// cached is an option of files that must have names, as Hadoop demands.
func cached(option string, add func(*parser, []string) error) func(*parser, string) error {
	return func(p *parser, list string) error {
		all := strings.Split(list, ",")
		for _, file := range all {
			if !strings.Contains(file, "#") {
				return fmt.Errorf("-%s %s: write URL#NAME, with the name in the working directory", option, file)
			}
		}
		return add(p, all)
	}
}

// files are side files: PATH or URL, and #NAME for another name than their own. Directories are used as archives are.
func (p *parser) files(all []string) error {
	for _, file := range all {
		name, from, info, err := p.shippedFile(file)
		switch {
		case err != nil:
			return err
		case name == "":
			continue
		case info != nil && info.IsDir():
			p.Job.Archives[name] = from
			continue
		case info != nil:
			p.shipped[p.local(from)] = name
		}
		p.Job.Files[name] = from
	}
	return nil
}

// archives are side files that are unpacked.
func (p *parser) archives(all []string) error {
	for _, file := range all {
		name, from, info, err := p.shippedFile(file)
		switch {
		case err != nil:
			return err
		case name == "":
			continue
		case info != nil && info.IsDir():
			return fmt.Errorf("archive %s is a directory: use -files", from)
		}
		if err := archive.Check(from); err != nil {
			return fmt.Errorf("archive %s: %w", from, err)
		}
		p.Job.Archives[name] = from
	}
	return nil
}

// shippedFile parses PATH#NAME or URL#NAME. name is empty if the text is. info describes a local file or directory.
func (p *parser) shippedFile(text string) (name, from string, info fs.FileInfo, err error) {
	if text == "" {
		return "", "", nil, nil
	}
	from, name, named := cutLast(text, "#")
	if rest, ok := strings.CutPrefix(from, "file:"); ok {
		from = "/" + strings.TrimLeft(strings.TrimPrefix(rest, "//localhost/"), "/")
	}
	if !named {
		name = path.Base(from)
	}
	if other := cmp.Or(p.Job.Files[name], p.Job.Archives[name]); other != "" && other != from {
		return "", "", nil, fmt.Errorf("files %s and %s would both be %s in the working directory: write %s#NAME", other, from, name, from)
	}
	if strings.Contains(from, "://") {
		return name, from, nil, nil
	}
	if info, err = os.Stat(p.local(from)); err != nil {
		return "", "", nil, fmt.Errorf("file %s to ship: %w", from, err)
	}
	return name, from, info, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// finish checks the options together and resolves classes.
func (p *parser) finish() (err error) {
	j := p.Job
	p.resolve()
	if p.reduces != "" {
		p.set(property.Reduces, p.reduces)
	}
	if j.io != "" {
		for _, direction := range []string{"stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output"} {
			p.set(direction, j.io)
		}
	}
	if j.Reducer == "NONE" {
		j.Reducer, j.MapOnly = "", true
	}
	if len(j.Inputs) == 0 {
		return errors.New("required option -input is missing")
	}
	if j.Output == "" {
		return errors.New("required option -output is missing")
	}
	for _, class := range []struct {
		role
		name *string
	}{{inputFormats, &j.InputFormat}, {outputFormats, &j.OutputFormat}, {partitioners, &j.Partitioner}} {
		if *class.name == "" {
			continue
		}
		if *class.name, err = class.class(*class.name); err != nil {
			return err
		}
	}
	if err := p.inputReader(); err != nil {
		return err
	}
	for _, command := range []struct {
		role
		name *string
	}{{mappers, &j.Mapper}, {combiners, &j.Combiner}, {reducers, &j.Reducer}} {
		short, err := command.class(*command.name)
		if err != nil {
			return err
		}
		if *command.name == "" || short != "" {
			continue
		}
		if len(words(*command.name)) == 0 {
			return fmt.Errorf("%s: the command is empty", command.option)
		}
		*command.name = p.unqualified(*command.name)
	}
	if reducer, _ := reducers.class(j.Reducer); reducer == aggregate && j.Combiner == "" {
		j.Combiner = aggregate
	}
	return nil
}

// inputReader resolves -inputreader. Hadoop ignores it if -inputformat names another format than the first two.
func (p *parser) inputReader() (err error) {
	j := p.Job
	if j.reader == "" {
		return nil
	}
	if j.XML, err = parseReader(j.reader); err != nil {
		return err
	}
	switch j.InputFormat {
	case "", keyValueInput, sequenceInput:
		j.InputFormat = streamInput
	default:
		p.Notes = append(p.Notes, fmt.Sprintf("-inputreader has no effect: -inputformat %s wins", j.InputFormat))
	}
	return nil
}

// unqualified replaces the path of a shipped file at the beginning of a command by its name in the working directory.
func (p *parser) unqualified(command string) string {
	program, args, _ := strings.Cut(command, " ")
	if name := p.shipped[p.local(program)]; name != "" && strings.Contains(program, "/") {
		return strings.TrimRight(name+" "+args, " ")
	}
	return command
}
