package mapreduce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Compile is for package mrtest, not for authors of jobs.
func (j *Job) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	return compile("", []*Job{j}, s)
}

// Compile is for package mrtest, not for authors of jobs.
func (f *Flow) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	if f == nil {
		return nil, errors.New("there is no flow")
	}
	if len(f.Jobs) == 0 {
		return nil, fmt.Errorf("flow %s has no jobs", f.Name)
	}
	return compile(f.Name, f.Jobs, s)
}

// compilation compiles jobs to a program.
type compilation struct {
	bridge.Settings
	propertyTable property.Table
	forAll        map[string]string            // properties of -D for all jobs
	forJob        map[string]map[string]string // properties of -D JOB:…, by the job's name
	jobs          []*Job                       // in the order in which they can run
	stages        []stage
	isRead        []bool // by job: another job reads its result
	formats       []Format
	plans         []wire.JobPlan
	warnings      []string
	readsInput    bool // a job reads Settings.Inputs
}

// compile checks jobs and compiles them to a Program.
func compile(flow string, jobs []*Job, s bridge.Settings) (*bridge.Compiled, error) {
	c, err := analyse(jobs, s)
	if err != nil {
		return nil, err
	}
	program := &mrruntime.Program{Plan: wire.Plan{Flow: flow, Jobs: c.plans}}
	compiled := &bridge.Compiled{Program: program, Warnings: c.warnings, ReadsInput: c.readsInput}
	for i := range c.jobs {
		job := c.code(i, func(t *mrruntime.Task) host { return attemptHost{t} }).runtimeJob()
		job.Texts = c.stages[i].texts()
		program.Jobs = append(program.Jobs, job)
	}
	return compiled, nil
}

// analyse checks jobs, orders them and describes them.
func analyse(jobs []*Job, s bridge.Settings) (*compilation, error) {
	c := &compilation{Settings: s, propertyTable: property.NewTable()}
	if c.Shared == nil {
		c.Shared = new(bridge.Shared).For("")
	}
	if err := c.order(jobs); err != nil {
		return nil, err
	}
	if err := c.splitProperties(); err != nil {
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

// jobCode is a job's functions.
type jobCode struct {
	maps    []mapFunc
	formats map[int]mrruntime.Format
	combine mrruntime.CombineFunc
	reduce  mrruntime.ReduceFunc
	ranges  *mrruntime.Ranges
	divides bool // see stage.dividesKeys
	spreads bool // see stage.spreadsKeys
}

func (c *compilation) code(i int, makeHost func(*mrruntime.Task) host) jobCode {
	st := c.stages[i]
	spec := &jobSpec{format: c.formats[i], outputs: c.plans[i].Outputs, noCombine: c.NoCombine, places: c.Places, host: makeHost, broadcasts: st.smallSides()}
	for n := range spec.broadcasts {
		spec.tables = append(spec.tables, c.Shared.Value(i, n, newBroadcastSlot).(*broadcastSlot))
	}
	code := jobCode{maps: st.maps(spec), reduce: st.reduce(spec), ranges: st.ranges(), divides: st.dividesKeys(), spreads: st.spreadsKeys(), formats: make(map[int]mrruntime.Format)}
	for i, in := range st.inputs() {
		if in.custom != nil {
			code.formats[i] = in.custom
		}
	}
	if combiner := st.combiner(spec); combiner != nil && !c.NoCombine {
		code.combine = func(t *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
			return combiner(t)(t, in, emit)
		}
	}
	return code
}

func (code jobCode) runtimeJob() mrruntime.Job {
	job := mrruntime.Job{Formats: code.formats, Combine: code.combine, Reduce: code.reduce, Ranges: code.ranges, DividesKeys: code.divides, SpreadsKeys: code.spreads}
	for _, run := range code.maps {
		job.Maps = append(job.Maps, func(t *mrruntime.Task, in *mrruntime.Split, out mrruntime.Collector) error {
			return run(t, in, out)
		})
	}
	return job
}
