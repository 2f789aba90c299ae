package mapreduce

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Compile is for package mrtest; a job's author has no use for it.
func (j *Job) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	return compile("", []*Job{j}, s)
}

// Compile is for package mrtest; a flow's author has no use for it.
func (f *Flow) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	if f == nil {
		return nil, errors.New("there is no flow")
	}
	if len(f.Jobs) == 0 {
		return nil, fmt.Errorf("flow %s has no jobs", f.Name)
	}
	return compile(f.Name, f.Jobs, s)
}

// compilation makes a program of jobs.
type compilation struct {
	bridge.Settings
	known    property.Table
	all      map[string]string            // properties of -D for all jobs
	own      map[string]map[string]string // and for one, by its name
	jobs     []*Job                       // in the order in which they can run
	stages   []stage
	read     []bool // by job: a later one reads its result
	formats  []Format
	plans    []wire.JobPlan
	warnings []string
	given    bool // a job reads Settings.Inputs
}

// compile checks jobs and turns them into a Program.
func compile(flow string, jobs []*Job, s bridge.Settings) (*bridge.Compiled, error) {
	c, err := analyse(jobs, s)
	if err != nil {
		return nil, err
	}
	program := &mrruntime.Program{Plan: wire.Plan{Flow: flow, Jobs: c.plans}}
	compiled := &bridge.Compiled{Program: program, Warnings: c.warnings, Given: c.given}
	for i := range c.jobs {
		program.Jobs = append(program.Jobs, c.code(i, func(t *mrruntime.Task) host { return attemptHost{t} }).erased())
		compiled.Texts = append(compiled.Texts, c.stages[i].texts())
	}
	return compiled, nil
}

// analyse checks jobs and describes them, in the order in which they can run.
func analyse(jobs []*Job, s bridge.Settings) (*compilation, error) {
	c := &compilation{Settings: s, known: property.NewTable()}
	if err := c.order(jobs); err != nil {
		return nil, err
	}
	if err := c.divide(); err != nil {
		return nil, err
	}
	for i, j := range c.jobs {
		plan, err := c.plan(i)
		if _, ok := errors.AsType[bridge.UsageError](err); ok {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		c.plans = append(c.plans, *plan)
	}
	if err := checkOutputs(c.plans); err != nil {
		return nil, err
	}
	slices.Sort(c.warnings)
	c.warnings = slices.Compact(c.warnings)
	return c, nil
}

// plan describes a job. It may replace the job's stage by a map-only one.
func (c *compilation) plan(i int) (*wire.JobPlan, error) {
	j := c.jobs[i]
	own, err := c.settled(j.Properties)
	if err != nil {
		return nil, fmt.Errorf("Job.Properties: %w", err)
	}
	if err := checkFormatName(c.formats[i]); err != nil {
		return nil, err
	}
	if c.read[i] && c.formats[i] != Format(Binary{}) {
		return nil, fmt.Errorf("its format is %s, but another job reads its result with From, which needs Binary", c.formats[i].Name())
	}
	plan := &wire.JobPlan{Name: j.Name, Format: c.formats[i].Name(), Outputs: slices.Clone(j.Outputs)}
	plan.Properties = c.known.Resolve(c.Defaults, own, c.all, c.own[j.Name])
	if plan.Reduces, err = c.reduces(i, own, plan.Properties); err != nil {
		return nil, err
	}
	st := c.stages[i]
	if err := saidOnce(st.check(c.formats[i])); err != nil {
		return nil, err
	}
	plan.Combine = st.combines() && !c.NoCombine
	plan.TotalOrder = st.ordered() && plan.Reduces > 1
	plan.Key, plan.Value = st.pairTypes()
	plan.OutKey, plan.OutValue = st.resultTypes()
	if plan.Inputs, err = c.inputs(st); err != nil {
		return nil, err
	}
	if plan.Files, err = c.files(j.Files); err != nil {
		return nil, err
	}
	if err := checkNamedOutputs(j.Outputs); err != nil {
		return nil, err
	}
	plan.Output, err = c.output(i, plan.Properties[property.Keep] == "true")
	return plan, err
}

// reduces is the number of reduces, which goes into the properties too.
func (c *compilation) reduces(i int, own, properties map[string]string) (int, error) {
	j, st := c.jobs[i], c.stages[i]
	want, field := j.Reduces, "Job.Reduces"
	if j.FixedReduces != 0 {
		want, field = j.FixedReduces, "Job.FixedReduces"
	}
	text, given := own[property.Reduces]
	switch {
	case want < 0:
		return 0, fmt.Errorf("%s is %d", field, want)
	case j.Reduces != 0 && j.FixedReduces != 0:
		return 0, errors.New("Job.Reduces and Job.FixedReduces are both set")
	case !st.reduces() && want > 0:
		return 0, fmt.Errorf("%s is %d, but MapOnly has no reduces", field, want)
	case given && want > 0 && text != strconv.Itoa(want):
		return 0, fmt.Errorf("%s is %d, but Job.Properties has %s=%s", field, want, property.Reduces, text)
	}
	if !st.reduces() {
		properties[property.Reduces] = "0"
		return 0, nil
	}
	_, ofAll := c.all[property.Reduces]
	_, ofJob := c.own[j.Name][property.Reduces]
	if !ofAll && !ofJob && want > 0 {
		properties[property.Reduces] = strconv.Itoa(want)
	}
	n, err := strconv.Atoi(properties[property.Reduces])
	if err != nil {
		return 0, fmt.Errorf("property %s: %w", property.Reduces, err)
	}
	if j.FixedReduces > 0 && n != j.FixedReduces {
		hint := ""
		if len(c.jobs) > 1 {
			hint = "; -D JOB:" + property.Reduces + "=N sets that of one other job"
		}
		return 0, bridge.Usagef("job %s: -D %s=%d is refused: the job is right with %d alone (Job.FixedReduces)%s", j.Name, property.Reduces, n, j.FixedReduces, hint)
	}
	if n > 0 {
		return n, nil
	}
	alone := st.alone()
	switch {
	case alone == nil:
		return 0, fmt.Errorf("%s=0, but a join needs reduces", property.Reduces)
	case c.read[i]:
		return 0, fmt.Errorf("%s=0, but another job reads what its reduces make", property.Reduces)
	}
	c.stages[i] = alone
	return 0, nil
}

func (c *compilation) inputs(st stage) ([]wire.InputPlan, error) {
	var plans []wire.InputPlan
	for _, in := range st.inputs() {
		plan := wire.InputPlan{Format: in.format, RecordSize: in.recordSize}
		switch {
		case in.from != nil:
			plan.From = c.writer(in.from) + 1
		case len(in.paths) == 0 && len(c.Inputs) == 0:
			return nil, bridge.Usagef("no input: give -input")
		default:
			paths := in.paths
			if len(paths) == 0 {
				paths, c.given = c.Inputs, true
			}
			for _, p := range paths {
				clean, err := c.cleanInput(p)
				if err != nil {
					return nil, fmt.Errorf("input: %w", err)
				}
				plan.Paths = append(plan.Paths, clean)
			}
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// output is a job's output directory: its own, else -output, or a directory there
// when the flow has several jobs. What only a later job reads has none unless it is kept.
func (c *compilation) output(i int, keep bool) (string, error) {
	j := c.jobs[i]
	switch {
	case j.Output != "":
		out, err := c.clean(j.Output)
		if err != nil {
			return "", fmt.Errorf("output: %w", err)
		}
		return out, nil
	case c.read[i] && !keep:
		return "", nil
	case c.Output == "":
		return "", bridge.Usagef("no output directory: give -output")
	}
	out, err := c.clean(c.Output)
	if err != nil {
		return "", fmt.Errorf("output: %w", err)
	}
	if len(c.jobs) > 1 {
		out = dfs.Join(out, j.Name)
	}
	return out, nil
}

func (c *compilation) files(given map[string]string) (map[string]string, error) {
	files := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return nil, fmt.Errorf("side file %q: its name is no file name", name)
		}
		clean, err := c.cleanInput(given[name])
		if err != nil {
			return nil, fmt.Errorf("side file %q: %w", name, err)
		}
		files[name] = clean
	}
	return files, nil
}

// cleanInput is clean for what may be a pattern: the directory that it is relative to
// must not be taken for a part of it.
func (c *compilation) cleanInput(name string) (string, error) {
	const special = `*?[]{}\`
	if !c.relative(name) {
		return c.clean(name)
	}
	var dir strings.Builder
	for _, b := range []byte(c.Dir) {
		if strings.IndexByte(special, b) >= 0 {
			dir.WriteByte('\\')
		}
		dir.WriteByte(b)
	}
	return dfs.Clean(dfs.Join(dir.String(), name))
}

func (c *compilation) relative(name string) bool {
	scheme, _, err := dfs.Scheme(name) // an error is for Clean to tell
	return c.Dir != "" && err == nil && scheme == "" && !path.IsAbs(name)
}

// clean makes a path a URL. It is the same in every process: relative paths are
// so to where the client ran.
func (c *compilation) clean(name string) (string, error) {
	if c.relative(name) {
		name = dfs.Join(c.Dir, name)
	}
	return dfs.Clean(name)
}

// maxJobName is the most bytes of a job's or output's name: a name of a file has 255,
// some of which are for the task's number.
const maxJobName = 200

// checkName allows what can be a directory of the output that listings show.
func checkName(what, name string) error {
	if name == "" {
		return fmt.Errorf("a %s has no name", what)
	}
	if strings.ContainsAny(name, "/\\\x00\n\t*?[]{},") || name[0] == '_' || name[0] == '.' {
		return fmt.Errorf("a %s cannot be named %q: a name has no slash, backslash, comma, tab, newline or any of *?[]{}, and its first character is neither _ nor a dot", what, name)
	}
	if len(name) > maxJobName {
		return fmt.Errorf("a %s's name %.40s… is too long: it has %d bytes, at most %d", what, name, len(name), maxJobName)
	}
	return nil
}

func checkFormatName(f Format) error {
	switch f.(type) {
	case Text, Raw, Binary:
		return nil
	}
	switch name := f.Name(); name {
	case "", Text{}.Name(), Raw{}.Name(), Raw{Keys: true}.Name(), Binary{}.Name():
		return fmt.Errorf("its format is named %q: the name is empty or taken", name)
	}
	return nil
}

func checkNamedOutputs(names []string) error {
	seen := make(map[string]bool)
	for _, name := range names {
		odd := strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
		})
		switch {
		case name == "" || name == "part" || odd:
			return fmt.Errorf("Job.Outputs: an output cannot be named %q: letters and digits only, and not part", name)
		case len(name) > maxJobName:
			return fmt.Errorf("Job.Outputs: the name %.40s… is too long: it has %d bytes, at most %d", name, len(name), maxJobName)
		case seen[name]:
			return fmt.Errorf("Job.Outputs names %q twice", name)
		}
		seen[name] = true
	}
	return nil
}

// checkOutputs refuses jobs that would write into each other's output, and those
// that read an output by its path, for which they would not wait.
func checkOutputs(jobs []wire.JobPlan) error {
	for i := range jobs {
		writer := &jobs[i]
		if writer.Output == "" {
			continue
		}
		for k := range jobs[:i] {
			if err := checkApart(&jobs[k], writer); err != nil {
				return err
			}
		}
		for k := range jobs {
			if k == i {
				continue // its output exists, which is said better elsewhere
			}
			if p, reads := readsWithin(&jobs[k], writer.Output); reads {
				return fmt.Errorf("job %s reads %s, which job %s is to write: one job of a flow reads another's result with From", jobs[k].Name, p, writer.Name)
			}
		}
	}
	return nil
}

// checkApart refuses two jobs with one output, or with one output inside the other.
func checkApart(a, b *wire.JobPlan) error {
	switch {
	case a.Output == "":
		return nil
	case a.Output == b.Output:
		return fmt.Errorf("jobs %s and %s have one output: %s", a.Name, b.Name, a.Output)
	case inside(a.Output, b.Output) || inside(b.Output, a.Output):
		return fmt.Errorf("of the outputs of jobs %s and %s one is inside the other: %s, %s", a.Name, b.Name, a.Output, b.Output)
	}
	return nil
}

// readsWithin finds the first path of a job's inputs that is dir or inside it.
func readsWithin(job *wire.JobPlan, dir string) (string, bool) {
	for _, in := range job.Inputs {
		for _, p := range in.Paths {
			if p == dir || inside(p, dir) {
				return p, true
			}
		}
	}
	return "", false
}

func inside(p, dir string) bool { return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }

// jobCode is a job's functions.
type jobCode struct {
	maps    []mapFunc
	formats map[int]mrruntime.Format
	combine mrruntime.CombineFunc
	reduce  mrruntime.ReduceFunc
}

func (c *compilation) code(i int, makeHost func(*mrruntime.Task) host) jobCode {
	st := c.stages[i]
	spec := &jobSpec{format: c.formats[i], outputs: c.plans[i].Outputs, noCombine: c.NoCombine, host: makeHost}
	code := jobCode{maps: st.maps(spec), reduce: st.reduce(spec), formats: make(map[int]mrruntime.Format)}
	for i, in := range st.inputs() {
		if in.own != nil {
			code.formats[i] = in.own
		}
	}
	if combiner := st.combiner(spec); combiner != nil && !c.NoCombine {
		code.combine = func(t *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
			return combiner(t)(t, in, emit)
		}
	}
	return code
}

func (code jobCode) erased() mrruntime.Job {
	job := mrruntime.Job{Formats: code.formats, Combine: code.combine, Reduce: code.reduce}
	for _, run := range code.maps {
		job.Maps = append(job.Maps, func(t *mrruntime.Task, in *mrruntime.Split, out mrruntime.Collector) error {
			return run(t, in, out)
		})
	}
	return job
}
