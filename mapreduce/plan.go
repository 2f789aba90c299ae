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
	"github.com/quernmr/quern/mapreduce/internal/program"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// plan describes a job. With mapreduce.job.reduces=0 it makes the stage map-only.
func (c *compilation) plan(i int) (*wire.JobPlan, error) {
	j := c.jobs[i]
	ofJob, err := c.checkProperties(j.Properties)
	if err != nil {
		return nil, fmt.Errorf("Job.Properties: %w", err)
	}
	if err := checkFormatName(c.formats[i]); err != nil {
		return nil, err
	}
	if c.isRead[i] && c.formats[i] != Format(Binary{}) {
		return nil, fmt.Errorf("its format is %s, but another job reads its result with From, which needs Binary", c.formats[i].Name())
	}
	plan := &wire.JobPlan{Name: j.Name, Format: c.formats[i].Name(), Outputs: slices.Clone(j.Outputs)}
	plan.Properties = c.propertyTable.Resolve(c.Defaults, ofJob, c.forAll, c.forJob[j.Name])
	if plan.Reduces, err = c.reduces(i, ofJob, plan.Properties); err != nil {
		return nil, err
	}
	if err := property.CheckSkipping(plan.Properties, plan.Reduces > 0); err != nil {
		if property.CheckSkipping(c.propertyTable.Resolve(c.Defaults, ofJob), plan.Reduces > 0) == nil {
			return nil, bridge.Usagef("job %s: %w", j.Name, err) // because of -D
		}
		return nil, err
	}
	if c.Step && plan.Properties[property.MarkSuccess] == "false" {
		return nil, fmt.Errorf("property %s=false is refused: a program that drives jobs finds the results of a session by _SUCCESS", property.MarkSuccess)
	}
	at := places{dir: c.Dir}
	if at.defaultFS, err = dfs.CleanDefault(plan.Properties[property.DefaultFS]); err != nil {
		return nil, err
	}
	st := c.stages[i]
	if err := distinctErrors(st.check(c.formats[i])); err != nil {
		return nil, err
	}
	plan.Combine = st.combines() && !c.NoCombine
	plan.TotalOrder = st.ordered() && plan.Reduces > 1
	if name := rangesProperty(plan.Properties); name != "" {
		switch url, err := at.clean(plan.Properties[name]); {
		case err != nil:
			return nil, fmt.Errorf("property %s: %w", name, err)
		case !plan.TotalOrder || st.ranges() == nil:
			return nil, fmt.Errorf("property %s is refused: it needs a job with Pairs.TotalOrderBy, and two reduces or more", name)
		case name == property.Ranges && plan.Properties[property.RangesOut] != "":
			return nil, fmt.Errorf("properties %s and %s are both set: ranges are read or sampled", name, property.RangesOut)
		default:
			plan.Properties[name] = url
		}
	}
	plan.Key, plan.Value = st.pairTypes()
	plan.OutKey, plan.OutValue = st.resultTypes()
	if plan.Inputs, err = c.inputs(st, at); err != nil {
		return nil, err
	}
	if plan.Files, err = at.sideFiles(j, plan.Properties); err != nil {
		return nil, err
	}
	if plan.Results, err = c.addBroadcasts(at, plan.Files, st.smallSides()); err != nil {
		return nil, err
	}
	if err := checkNamedOutputs(j.Outputs); err != nil {
		return nil, err
	}
	if plan.Output, err = c.output(i, at, plan.Properties[property.Keep] == "true"); err != nil {
		return nil, err
	}
	if plan.Output != "" && plan.Format == (Binary{}).Name() {
		plan.Types, err = st.resultForm()
	}
	return plan, err
}

// reduces returns the number of reduces, and sets it in properties too.
func (c *compilation) reduces(i int, ofJob, properties map[string]string) (int, error) {
	j, st := c.jobs[i], c.stages[i]
	want, field := j.Reduces, "Job.Reduces"
	if j.FixedReduces != 0 {
		want, field = j.FixedReduces, "Job.FixedReduces"
	}
	text, given := ofJob[property.Reduces]
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
	_, setForAll := c.forAll[property.Reduces]
	_, setForJob := c.forJob[j.Name][property.Reduces]
	if !setForAll && !setForJob && want > 0 {
		properties[property.Reduces] = strconv.Itoa(want)
	}
	n, err := strconv.Atoi(properties[property.Reduces])
	if err != nil {
		return 0, fmt.Errorf("property %s: %w", property.Reduces, err)
	}
	if j.FixedReduces > 0 && n != j.FixedReduces {
		hint := ""
		if len(c.jobs) > 1 {
			hint = "; -D JOB:" + property.Reduces + "=N sets it for one other job"
		}
		return 0, bridge.Usagef("job %s: -D %s=%d is refused: the job is right only with %d (Job.FixedReduces)%s", j.Name, property.Reduces, n, j.FixedReduces, hint)
	}
	if n > 0 {
		return n, nil
	}
	mapOnly := st.withoutReduces()
	switch {
	case mapOnly == nil:
		return 0, fmt.Errorf("%s=0, but a join needs reduces", property.Reduces)
	case c.isRead[i]:
		return 0, fmt.Errorf("%s=0, but another job reads the output of its reduces", property.Reduces)
	}
	c.stages[i] = mapOnly
	return 0, nil
}

func (c *compilation) inputs(st stage, at places) ([]wire.InputPlan, error) {
	var plans []wire.InputPlan
	for _, in := range st.inputs() {
		plan := wire.InputPlan{Format: in.format, RecordSize: in.recordSize, Types: in.types}
		switch {
		case in.from != nil:
			plan.From = c.writerOf(in.from) + 1
		case in.format == "generated":
			plan.Splits = in.splits
		case len(in.paths) == 0 && len(c.Inputs) == 0:
			return nil, bridge.Usagef("no input: give -input")
		default:
			paths := in.paths
			if len(paths) == 0 {
				paths, c.readsInput = c.Inputs, true
			}
			for _, p := range paths {
				if p == "" && len(in.paths) > 0 {
					return nil, fmt.Errorf("an input of %s has an empty path: is a flag missing?", in.format)
				}
				clean, err := at.cleanInput(p)
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

// output returns a job's output directory: Job.Output, else -output, or a directory
// below -output in a flow. It returns "" for a result that only later jobs read, unless
// the result is kept.
func (c *compilation) output(i int, at places, keep bool) (string, error) {
	j := c.jobs[i]
	switch {
	case j.Output != "":
		out, err := at.clean(j.Output)
		if err != nil {
			return "", fmt.Errorf("output: %w", err)
		}
		return out, nil
	case c.isRead[i] && !keep:
		return "", nil
	case c.Output == "":
		return "", bridge.Usagef("no output directory: give -output")
	}
	out, err := at.clean(c.Output)
	if err != nil {
		return "", fmt.Errorf("output: %w", err)
	}
	if len(c.jobs) > 1 {
		out = dfs.Join(out, j.Name)
	}
	return out, nil
}

// places says what paths mean.
type places struct {
	dir       string // path or URL for relative local paths; empty: the working directory
	defaultFS string // in the form of [dfs.CleanDefault]
}

// sideFiles returns the URLs of all side files. Names of directories get a slash.
func (at places) sideFiles(j *Job, properties map[string]string) (map[string]string, error) {
	files := make(map[string]string)
	if err := at.addFiles(files, j.Files, ""); err != nil {
		return nil, err
	}
	if err := at.addFiles(files, j.Archives, "/"); err != nil {
		return nil, err
	}
	cached, err := mrruntime.ParseCached(properties[mrruntime.CacheArchives])
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", mrruntime.CacheArchives, err)
	}
	for _, c := range cached {
		if err := at.addFiles(files, map[string]string{c.Name: c.Path}, "/"); err != nil {
			return nil, fmt.Errorf("property %s: %w", mrruntime.CacheArchives, err)
		}
	}
	return files, nil
}

func (at places) addFiles(to, given map[string]string, suffix string) error {
	kind := "side file"
	if suffix != "" {
		kind = "archive"
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("%s %q: its name is not a file name", kind, name)
		}
		if to[name] != "" || to[name+"/"] != "" {
			return fmt.Errorf("%s %q: a side file or archive with this name is declared already", kind, name)
		}
		clean, err := at.cleanInput(given[name])
		if err != nil {
			return fmt.Errorf("%s %q: %w", kind, name, err)
		}
		to[name+suffix] = clean
	}
	return nil
}

// cleanInput is clean for globs. It escapes special characters of the working
// directory, because they are not part of the author's glob.
func (at places) cleanInput(name string) (string, error) {
	if !at.relative(name) {
		return at.clean(name)
	}
	return dfs.Clean(dfs.Join(program.EscapeGlob(at.dir), name))
}

func (at places) relative(name string) bool {
	scheme, _, err := dfs.Scheme(name) // Clean reports the error
	return at.dir != "" && at.defaultFS == "" && err == nil && scheme == "" && !path.IsAbs(name)
}

// clean converts a path to a URL that is the same in every process: relative paths are
// relative to the client's working directory.
func (at places) clean(name string) (string, error) {
	if at.relative(name) {
		name = dfs.Join(at.dir, name)
	}
	return dfs.CleanOn(at.defaultFS, name)
}
