package mrtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// runner runs one job in several variants.
type runner struct {
	ctx context.Context
	dir string // data directory of clusters; empty: the system's temporary directory
	job Runnable

	places atomic.Bool // a map has asked for the place of a record
}

// variant is a way to run a job that must not change its output.
type variant struct {
	name     string
	defaults map[string]string // of properties that the job does not set
	combine  bool
	text     bool // write lines instead of the job's format
	poison   bool
	emitted  *emitted // not nil: records map output
}

var variants = []variant{
	{name: "split by record", combine: true, defaults: map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "8"}},
	{name: "without its combiner"},
	{name: "on three reduces", combine: true, defaults: map[string]string{"mapreduce.job.reduces": "3"}},
}

// runAll returns the output of the unchanged job. If it returns both an output and an
// error, other runs had different outputs.
func (k *runner) runAll(files map[string]string, reverse bool) (*Output, error) {
	first, second := &emitted{maps: make(map[mapTask]*mapOutput)}, &emitted{maps: make(map[mapTask]*mapOutput)}
	asItIs := variant{combine: true, emitted: first}
	plan, err := k.plan(files, asItIs)
	if err != nil {
		return nil, err
	}
	out, err := k.run(files, asItIs)
	if err != nil {
		return nil, err
	}
	want := out
	if !writesText(plan) {
		asItIs.text = true
		if want, err = k.run(files, asItIs); err != nil {
			return nil, err
		}
	}
	got, err := k.run(files, variant{name: "a second time", combine: true, text: true, emitted: second})
	if err == nil {
		err = compareRuns(first, second, want, got)
	}
	errs := []error{err}
	check := func(files map[string]string, v variant) {
		v.text, v.poison = true, true
		got, err := k.run(files, v)
		if err == nil {
			err = compareOutputs(v.name, want, got)
		}
		errs = append(errs, err)
	}
	for _, v := range variants {
		check(files, v)
	}
	if reverse && readsLines(plan) && !k.places.Load() {
		reversed := map[string]string{inputName: reverseLines(files[inputName])}
		check(reversed, variant{name: "with its input in reverse order", combine: true})
	}
	return out, errors.Join(errs...)
}

func (k *runner) settings(files map[string]string, v variant) bridge.Settings {
	s := bridge.Settings{Output: outputDir, Dir: inputDir, Defaults: v.defaults, NoCombine: !v.combine, Text: v.text, Places: &k.places}
	for name := range files {
		s.Inputs = append(s.Inputs, name)
	}
	slices.Sort(s.Inputs)
	return s
}

func (k *runner) plan(files map[string]string, v variant) (*wire.Plan, error) {
	compiled, err := k.job.Compile(k.settings(files, v))
	if err != nil {
		return nil, err
	}
	return &compiled.Program.Plan, nil
}

// writesText reports whether all outputs are lines.
func writesText(plan *wire.Plan) bool {
	return !slices.ContainsFunc(plan.Jobs, func(j wire.JobPlan) bool { return j.Output != "" && j.Format != "text" })
}

// readsLines reports whether all inputs are lines, which can be reversed.
func readsLines(plan *wire.Plan) bool {
	return !slices.ContainsFunc(plan.Jobs, func(j wire.JobPlan) bool {
		return slices.ContainsFunc(j.Inputs, func(in wire.InputPlan) bool {
			return in.From == 0 && in.Format != "lines" && in.Format != "keyvalues"
		})
	})
}

const (
	inputDir  = "mem://mrtest/in"
	outputDir = "mem://mrtest/out"
)

// run runs the job on a new cluster.
func (k *runner) run(files map[string]string, v variant) (out *Output, err error) {
	memory := dfs.Mux{"mem": mem.New(1 << 20), "file": local.New()}
	for name, content := range files {
		if err := write(memory, dfs.Join(inputDir, name), content); err != nil {
			return nil, err
		}
	}
	plan, err := k.plan(files, v)
	if err != nil {
		return nil, err
	}
	// One slot of each kind, because attempts may share captured variables.
	cluster, err := embedded.Start(embedded.Config{FS: memory, Load: k.loader(files, v), Dir: k.dir, Slots: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	ended, err := k.finish(cluster, memory, &wire.Submission{Plan: *plan})
	if err != nil {
		return nil, err
	}
	out = &Output{Files: make(map[string]string), Counters: make(wire.Counters)}
	for _, status := range ended {
		if status.State != wire.Succeeded {
			return nil, fmt.Errorf("job %s, %s: %v: %s", status.Name, cmp.Or(v.name, "as it is"), status.State, status.Error)
		}
		wire.Counters(out.Counters).Merge(status.Counters)
	}
	return out, collect(memory, outputDir, out.Files)
}

// finish submits jobs and waits until they end.
func (k *runner) finish(c *embedded.Cluster, f dfs.FS, sub *wire.Submission) (last []wire.JobStatus, err error) {
	if err := client.Stage(f, c.Staging(), sub); err != nil {
		return nil, err
	}
	ids, err := c.Submit(k.ctx, *sub)
	if err != nil {
		return nil, err
	}
	for statuses, err := range c.Watch(k.ctx, ids) {
		if err != nil {
			return nil, err
		}
		last = statuses
	}
	return last, nil
}

// loader builds the job's program for every attempt, as a worker process does.
func (k *runner) loader(files map[string]string, v variant) runtime.Load {
	return func(*wire.Submission) (*runtime.Program, error) {
		compiled, err := k.job.Compile(k.settings(files, v))
		if err != nil {
			return nil, err
		}
		if v.emitted != nil {
			v.emitted.intercept(compiled)
		}
		if v.poison {
			for i := range compiled.Program.Jobs {
				poisonJob(&compiled.Program.Jobs[i])
			}
		}
		return compiled.Program, nil
	}
}

// poisonJob overwrites the arguments of combiners and reduces as early as allowed.
func poisonJob(job *runtime.Job) {
	if combine := job.Combine; combine != nil {
		job.Combine = func(t *runtime.Task, in runtime.Records, emit func(key, value []byte) error) error {
			return combine(t, &poisoned{Records: in}, emit)
		}
	}
	if reduce := job.Reduce; reduce != nil {
		job.Reduce = func(t *runtime.Task, in runtime.Records) error {
			return reduce(t, &poisoned{Records: in})
		}
	}
}

// poisoned returns copies of keys and values, and overwrites them at the next record.
type poisoned struct {
	runtime.Records
	key, value []byte
}

func (p *poisoned) Next() bool {
	overwrite(p.key)
	overwrite(p.value)
	if !p.Records.Next() {
		return false
	}
	p.key = slices.Clone(p.Records.Key())
	p.value = slices.Clone(p.Records.Value())
	return true
}

func (p *poisoned) Key() []byte   { return p.key }
func (p *poisoned) Value() []byte { return p.value }

func overwrite(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
