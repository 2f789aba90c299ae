package streaming

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/mapreduce/internal/program"
	"github.com/quernmr/quern/mapreduce/internal/property"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Properties of Streaming and of the classes that this package has. Their old names work too.
const (
	nameProperty       = "mapreduce.job.name"
	comparatorClass    = "mapreduce.job.output.key.comparator.class"
	partitionerClass   = "mapreduce.job.partitioner.class"
	partitionerOptions = "mapreduce.partition.keypartitioner.options"
	comparatorOptions  = "mapreduce.partition.keycomparator.options"
	keyFieldSeparator  = "mapreduce.map.output.key.field.separator"
	partitionFields    = "num.key.fields.for.partition"
	mapKeyClass        = "mapreduce.map.output.key.class"
	mapValueClass      = "mapreduce.map.output.value.class"
	outKeyClass        = "mapreduce.job.output.key.class"
	outValueClass      = "mapreduce.job.output.value.class"
	perNode            = "mapreduce.input.fileinputformat.split.minsize.per.node"
	perRack            = "mapreduce.input.fileinputformat.split.minsize.per.rack"
	sortMemory         = "mapreduce.task.io.sort.mb"
	truncateLimit      = "stream.jobconf.truncate.limit"
	enoughProperty     = "stream.minRecWrittenToEnableSkip_"
	lazyProperty       = "quern.output.lazy"
	resolverClass      = "stream.io.identifier.resolver.class"
)

// streamProperties have an effect. Hadoop has others for its own use.
var streamProperties = []string{
	"stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output",
	"stream.map.input.field.separator", "stream.map.output.field.separator", "stream.reduce.input.field.separator", "stream.reduce.output.field.separator",
	"stream.num.map.output.key.fields", "stream.num.reduce.output.key.fields",
	"stream.map.input.ignoreKey", "stream.non.zero.exit.is.failure", "stream.stderr.reporter.prefix", truncateLimit, enoughProperty,
}

// compiled is a job with its settings resolved.
type compiled struct {
	*Job
	plan     *wire.JobPlan
	warnings []string
	keys     *keyOrder      // of map output; nil: the bytes of keys
	parts    *keyHash       // nil: Hadoop's hash of the key
	input    *runtime.Chunk // of a map's attempt; nil: of other attempts

	forms             forms
	mapped            classes   // of map output, if there are reduces
	declared          classes   // of the job's output
	mapCut, reduceCut splitting // of lines that commands write
	ignoreKey         bool      // a line that a mapper reads has no key
	exitFails         bool      // an exit code other than 0 fails the attempt
	lazy              bool      // a task without records writes no file
	enough            int       // records that a mapper must have written so that it may leave input unread
	lineMax           int       // bytes of a line that a command writes
	sortMiB           int       // memory for map output
	valueMax          int       // bytes of a property in the environment; -1: no limit
	nameMax, groupMax int       // characters of counters' names
}

func (j *Job) compile(dir string) (*compiled, error) {
	own := *j
	c := &compiled{Job: &own}
	properties, err := c.properties()
	if err != nil {
		return nil, err
	}
	c.plan = &wire.JobPlan{Name: "streaming", Key: "text", Value: "text", OutKey: "text", OutValue: "text", Format: runtime.FormatMapred, Properties: properties}
	if name := properties[nameProperty]; name != "" {
		c.plan.Name = name
	}
	if c.plan.Reduces, err = strconv.Atoi(properties[property.Reduces]); err != nil {
		return nil, fmt.Errorf("property %s: %w", property.Reduces, err)
	}
	if c.plan.Reduces == 0 {
		c.MapOnly = true
	}
	c.plan.Combine = j.Combiner != "" && !c.MapOnly
	c.noteUnused()
	c.forms = forms{c.form("stream.map.input"), c.form("stream.map.output"), c.form("stream.reduce.input"), c.form("stream.reduce.output")}
	if err := cmp.Or(c.numbers(), c.truths(), c.classify(), c.check()); err != nil {
		return nil, err
	}
	if c.plan.Inputs, err = j.inputs(dir); err != nil {
		return nil, err
	}
	if c.plan.Output, err = j.data(dir, j.Output); err != nil {
		return nil, fmt.Errorf("-output: %w", err)
	}
	if c.plan.Files, err = c.files(dir); err != nil {
		return nil, err
	}
	return c, c.order()
}

// noteUnused warns of options without effect in a job that has no reduces. Hadoop ignores them in silence.
func (c *compiled) noteUnused() {
	for _, o := range []struct{ name, value string }{{"-combiner", c.Combiner}, {"-reducer", c.Reducer}} {
		if c.MapOnly && o.value != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("%s %s has no effect: the job has no reduces", o.name, o.value))
		}
	}
}

// properties resolves the properties. Those that name classes or order keys are refused for other jobs, so they are not
// checked with the others.
func (c *compiled) properties() (map[string]string, error) {
	table, ofStreaming, given := property.NewTable(), make(map[string]string), make(map[string]string)
	for name, value := range c.Properties {
		switch current := property.CurrentName(name); current {
		case nameProperty, comparatorClass, partitionerClass, partitionerOptions, comparatorOptions, keyFieldSeparator, mapDebug, reduceDebug, mapKeyClass, mapValueClass, outKeyClass, outValueClass:
			ofStreaming[current] = value
		case perNode, perRack:
			if c.InputFormat == combineInput && value != "" && value != "0" {
				return nil, fmt.Errorf("property %s=%s is refused: splits of %s have only a maximum, %s", name, value, combineInput, runtime.SplitMaxSize)
			}
			given[name] = value
		default:
			given[name] = value
		}
	}
	normalized, warnings, err := table.Normalize(given)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(normalized)) {
		switch {
		case !strings.HasPrefix(name, "stream.") || slices.Contains(streamProperties, name):
		case name == resolverClass && (normalized[name] == "" || normalized[name] == "org.apache.hadoop.streaming.io.IdentifierResolver"):
		case name == resolverClass:
			return nil, fmt.Errorf("property %s=%s is refused: Quern runs no Java; for the forms of records see -io", name, normalized[name])
		default:
			warnings = append(warnings, fmt.Sprintf("property %s is not known to Quern: only commands see it, in their environment%s", name, spelling.DidYouMean("", name, streamProperties)))
		}
	}
	for _, name := range []string{"mapreduce.map.skip.maxrecords", "mapreduce.reduce.skip.maxgroups"} {
		if n := normalized[name]; n != "" && n != "0" {
			return nil, fmt.Errorf("property %s=%s is refused: a command reads ahead, so it is not known which record is bad", name, n)
		}
	}
	if normalized[property.InProcess] == "true" {
		return nil, fmt.Errorf("property %s=true is refused: commands are processes of their own", property.InProcess)
	}
	if c.Lazy || c.OutputFormat == nullOutput {
		normalized[lazyProperty] = "true"
	}
	if c.MapOnly {
		if n := cmp.Or(normalized[property.Reduces], "0"); n != "0" {
			warnings = append(warnings, fmt.Sprintf("property %s=%s has no effect: -reducer NONE wins", property.Reduces, n))
		}
		normalized[property.Reduces] = "0"
	}
	c.warnings = warnings
	return table.Resolve(normalized, ofStreaming), nil
}

// get returns a property, or a default if it is empty, as Hadoop's Streaming does.
func (c *compiled) get(name, byDefault string) string {
	if value := c.plan.Properties[name]; value != "" {
		return value
	}
	return byDefault
}

// number returns a property that is a whole number.
func (c *compiled) number(name string, byDefault int) (int, error) {
	text := strings.TrimSpace(c.plan.Properties[name])
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < min(byDefault, 0) {
		return 0, fmt.Errorf("property %s=%q: must be a whole number", name, text)
	}
	return n, nil
}

// numbers resolves the properties that are numbers.
func (c *compiled) numbers() error {
	c.mapCut.separator = []byte(c.get("stream.map.output.field.separator", "\t"))
	c.reduceCut.separator = []byte(c.get("stream.reduce.output.field.separator", "\t"))
	for _, number := range []struct {
		name      string
		byDefault int
		to        *int
	}{
		{"stream.num.map.output.key.fields", 1, &c.mapCut.fields},
		{"stream.num.reduce.output.key.fields", 1, &c.reduceCut.fields},
		{enoughProperty, math.MaxInt, &c.enough},
		{truncateLimit, -1, &c.valueMax},
		{runtime.RecordMaxBytes, 0, &c.lineMax},
		{sortMemory, 100, &c.sortMiB},
		{"mapreduce.job.counters.counter.name.max", 64, &c.nameMax},
		{"mapreduce.job.counters.group.name.max", 128, &c.groupMax},
	} {
		var err error
		if *number.to, err = c.number(number.name, number.byDefault); err != nil {
			return err
		}
	}
	return nil
}

// truths resolves the properties that are true or false.
func (c *compiled) truths() error {
	for _, truth := range []struct {
		name      string
		byDefault bool
		to        *bool
	}{
		{"stream.map.input.ignoreKey", c.InputFormat == "" || c.InputFormat == textInput, &c.ignoreKey},
		{"stream.non.zero.exit.is.failure", true, &c.exitFails},
		{lazyProperty, false, &c.lazy},
	} {
		var ok bool
		if *truth.to, ok = parseTruth(c.plan.Properties[truth.name], truth.byDefault); !ok {
			return fmt.Errorf("property %s=%q: must be true or false", truth.name, c.plan.Properties[truth.name])
		}
	}
	return nil
}

// parseTruth parses true or false as Hadoop does, which takes the default for any other text.
func parseTruth(text string, byDefault bool) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "":
		return byDefault, true
	}
	return false, false
}

// forms are the forms of what commands read and write.
type forms struct{ mapIn, mapOut, reduceIn, reduceOut string }

func (c *compiled) form(name string) string { return formOf(c.plan.Properties[name]) }

// classify finds the classes of map output and of the output, as Hadoop does.
func (c *compiled) classify() error {
	p := c.plan.Properties
	c.declared = classes{cmp.Or(p[outKeyClass], longClass), cmp.Or(p[outValueClass], textClass)}
	mapSays := c.mapClass() == "" || p["stream.map.output"] != ""
	if mapSays && c.MapOnly {
		c.declared = written(c.forms.mapOut)
	}
	if !c.MapOnly && c.reduceClass() == "" || p["stream.reduce.output"] != "" {
		c.declared = written(c.forms.reduceOut)
	}
	c.mapped = classes{cmp.Or(p[mapKeyClass], c.declared.key), cmp.Or(p[mapValueClass], c.declared.value)}
	if mapSays {
		c.mapped = written(c.forms.mapOut)
	}
	if of, known := c.inputClasses(); known && c.mapClass() == identityMapper {
		return c.checkPassed(of)
	}
	return nil
}

// checkPassed checks the classes of records that the identity mapper passes on.
func (c *compiled) checkPassed(of classes) error {
	switch {
	case c.MapOnly:
		return nil
	case of != c.mapped:
		return fmt.Errorf("type mismatch in key from map: the mapper is the identity, so its keys and values are %v, but the job declares %v: give a -mapper, -inputformat %s, or set %s and %s",
			of, c.mapped, keyValueInput, mapKeyClass, mapValueClass)
	case !sortsAsBytes(of.key), of.key == longClass && c.InputFormat != "" && c.InputFormat != textInput && c.InputFormat != nLineInput && c.InputFormat != combineInput:
		return fmt.Errorf("keys of the class %s cannot be sorted: give a -mapper", of.key)
	}
	return nil
}

// sortsAsBytes reports whether a class orders its values by their bytes. Offsets are never negative.
func sortsAsBytes(class string) bool {
	return class == textClass || class == bytesClass || class == typedClass || class == longClass
}

// check refuses what no attempt could do.
func (c *compiled) check() error {
	combine := c.combineClass()
	switch {
	case c.MapOnly:
	case c.Combiner != "" && combine == "" && written(c.forms.reduceOut) != c.mapped:
		return fmt.Errorf("-combiner %s would write %v, as stream.reduce.output says, but map output is %v", c.Combiner, written(c.forms.reduceOut), c.mapped)
	case (combine == aggregate || c.reduceClass() == aggregate) && c.mapped != texts:
		return fmt.Errorf("-reducer %s adds up text, but map output is %v", aggregate, c.mapped)
	case c.plan.Properties[comparatorClass] != "" && c.mapped.key != textClass:
		return fmt.Errorf("%s orders text, but keys of map output are %s", keyFieldComparator, c.mapped.key)
	}
	return nil
}

func (c *compiled) mapClass() string {
	if c.Mapper == "" {
		return identityMapper
	}
	name, _ := mappers.class(c.Mapper) // Parse has checked it
	return name
}

func (c *compiled) reduceClass() string {
	if c.Reducer == "" {
		return identityReducer
	}
	name, _ := reducers.class(c.Reducer)
	return name
}

func (c *compiled) combineClass() string {
	name, _ := combiners.class(c.Combiner)
	return name
}

func (j *Job) inputs(dir string) ([]wire.InputPlan, error) {
	in := wire.InputPlan{Format: "text"}
	switch j.InputFormat {
	case nLineInput:
		in.Format = "nlines"
	case combineInput:
		in.Format = runtime.FormatCombined
	case sequenceInput, sequenceAsTextInput, streamInput:
		in.Format = "pieces"
	}
	for _, list := range j.Inputs {
		paths, err := program.SplitList(list)
		if err != nil {
			return nil, fmt.Errorf("-input %q: %w", list, err)
		}
		for _, p := range paths {
			url, err := j.data(program.EscapeGlob(dir), p)
			if err != nil {
				return nil, fmt.Errorf("-input %q: %w", p, err)
			}
			in.Paths = append(in.Paths, url)
		}
	}
	if len(in.Paths) == 0 {
		return nil, errors.New("-input is missing")
	}
	return []wire.InputPlan{in}, nil
}

// files returns the URLs of the side files. Names of directories, which archives are, end with a slash.
func (c *compiled) files(dir string) (map[string]string, error) {
	files := make(map[string]string)
	add := func(name, from, suffix string, url func(dir, name string) (string, error)) error {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("file %s: %q is no name of a file in the working directory", from, name)
		}
		if name == temporary {
			return fmt.Errorf("file %s: %s is the temporary directory in the working directory: write %s#NAME", from, name, from)
		}
		clean, err := url(dir, from)
		if err != nil {
			return fmt.Errorf("file %s: %w", from, err)
		}
		clean = program.EscapeGlob(clean)
		if other := files[name] + files[name+"/"]; other != "" && (other != clean || files[name+suffix] == "") {
			return fmt.Errorf("files %s and %s would both be %s in the working directory: write %s#NAME", other, from, name, from)
		}
		files[name+suffix] = clean
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if err := add(name, c.Files[name], "", clean); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Archives)) {
		if err := add(name, c.Archives[name], "/", clean); err != nil {
			return nil, err
		}
	}
	cached, err := runtime.ParseCached(c.plan.Properties[runtime.CacheArchives])
	for _, archive := range cached {
		err = cmp.Or(err, add(archive.Name, archive.Path, "/", c.data))
	}
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", runtime.CacheArchives, err)
	}
	return files, nil
}

func relative(name string) bool {
	scheme, _, err := dfs.Scheme(name) // Clean reports the error
	return err == nil && scheme == "" && !path.IsAbs(name)
}

// DefaultFS returns the file system that the property fs.defaultFS names, in the form of [dfs.CleanDefault].
func (j *Job) DefaultFS() (string, error) {
	for name, value := range j.Properties {
		if property.CurrentName(name) == property.DefaultFS {
			url, err := dfs.CleanDefault(value)
			if err != nil {
				return "", fmt.Errorf("property %s: %w", name, err)
			}
			return url, nil
		}
	}
	return "", nil
}

// SetDefaultFS sets the property fs.defaultFS, which may have an older name so far.
func (j *Job) SetDefaultFS(url string) {
	maps.DeleteFunc(j.Properties, func(name, _ string) bool { return property.CurrentName(name) == property.DefaultFS })
	j.Properties[property.DefaultFS] = url
}

// data returns the URL of an input or output.
func (j *Job) data(dir, name string) (string, error) {
	scheme, _, err := dfs.Scheme(name)
	switch {
	case err != nil || scheme != "" || j.Home == "":
		return clean(dir, name)
	case path.IsAbs(name):
		scheme, rest, _ := strings.Cut(j.Home, "://")
		authority, _, _ := strings.Cut(rest, "/")
		return dfs.Clean(scheme + "://" + authority + name)
	}
	return clean(j.Home, name)
}

// clean returns the URL of a path; relative ones are below dir.
func clean(dir, name string) (string, error) {
	if name == "" {
		return "", errors.New("the path is empty")
	}
	if relative(name) {
		name = dfs.Join(dir, name)
	}
	return dfs.Clean(name)
}
