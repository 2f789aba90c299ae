package mapreduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/program"
)

// Drive runs the program as a driver of jobs, and exits. Like [Main], it adds flags to the program's own
// and parses them: -input, -output, -D and -h, -session and -quiet. In the client it then calls drive, which runs
// jobs with [Definition.Run], looks at their results, and decides what to run next. Workers never call
// drive: they build each job from its definition, its parameters and the flags.
//
// The exit code is 0 if drive returns nil, 2 for bad usage, 1 otherwise.
func Drive(drive func(d *Driver) error, definitions ...Defined) {
	os.Exit(program.Drive(driving(drive, definitions), bridged(definitions)))
}

func driving(drive func(d *Driver) error, definitions []Defined) func(context.Context, *program.Driving) error {
	return func(ctx context.Context, d *program.Driving) error {
		return drive(&Driver{Context: ctx, Inputs: d.Inputs, driving: d, definitions: definitions})
	}
}

func bridged(definitions []Defined) (all []bridge.Definition) {
	for _, def := range definitions {
		all = append(all, def.(bridge.Definition))
	}
	return all
}

// RunInProcess is for package mrtest, not for authors of jobs.
func RunInProcess(ctx context.Context, s bridge.Settings, drive func(d *Driver) error, definitions ...Defined) error {
	return program.DriveInProcess(ctx, s, driving(drive, definitions), bridged(definitions))
}

// Driver runs the jobs of a program. It is also a context, which ends when the user interrupts the
// program: then running jobs are killed. Several goroutines may use it.
type Driver struct {
	context.Context

	Inputs []string // paths of -input, which inputs without paths read

	driving     *program.Driving
	definitions []Defined
}

// Output returns -output, for Job.Output by way of parameters. Without -output it returns an error, with which the
// program should end: call it before the first job.
func (d *Driver) Output() (string, error) {
	if d.driving.Output == "" {
		return "", bridge.Usagef("no output directory: give -output")
	}
	return d.driving.Output, nil
}

// WithContext returns a Driver for runs that are killed when ctx ends. Derive ctx from the Driver.
func (d *Driver) WithContext(ctx context.Context) *Driver {
	derived := *d
	derived.Context = ctx
	return &derived
}

// Defined is implemented by *[Definition].
type Defined interface{ defined() }

// Definition is a job with parameters of type P, and a result of type K, V.
type Definition[P, K, V any] struct {
	name  string
	build func(job *Job, params P) (*Result[K, V], error)
}

// Define returns a definition. The function builds the job from the parameters and the flags alone, in
// the client and in every worker. It may set fields of job, except its name. Give the definition to
// [Drive] too.
//
// A job without Job.Output writes its result in the format [Binary] into the session, from where
// [Definition.Run] of later jobs and the driver read it. With Job.Output it writes [Text] there, unless
// Job.Format is Binary.
//
// Parameters travel as JSON: exported fields of structs, slices and maps. A [Dataset] in them is passed by
// its place, not by its records.
func Define[P, K, V any](name string, build func(job *Job, params P) (*Result[K, V], error)) *Definition[P, K, V] {
	return &Definition[P, K, V]{name, build}
}

func (def *Definition[P, K, V]) defined() {}

// Name returns the definition's name.
func (def *Definition[P, K, V]) Name() string { return def.name }

// Build is for package program, not for authors of jobs.
func (def *Definition[P, K, V]) Build(params []byte) (bridge.Compiler, error) {
	job, _, err := def.job(params)
	return job, err
}

func (def *Definition[P, K, V]) job(params []byte) (*Job, *Result[K, V], error) {
	if def.build == nil {
		return nil, nil, fmt.Errorf("definition %s has no function", def.name)
	}
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, nil, fmt.Errorf("parameters of %s: %w", def.name, err)
	}
	job := &Job{Name: def.name}
	result, err := def.build(job, p)
	switch {
	case err != nil:
		return nil, nil, err
	case result == nil:
		return nil, nil, errors.New("its definition returned no result")
	case job.Name != def.name:
		return nil, nil, fmt.Errorf("its definition set Job.Name to %q: the name is that of the definition", job.Name)
	}
	job.stage = result.stage
	return job, result, nil
}

// Run runs the job with these parameters and waits for its end. It returns an error if the job fails, is
// killed, or cannot be built. When the Driver's context ends, it kills the job.
func (def *Definition[P, K, V]) Run(d *Driver, params P) (Dataset[K, V], error) {
	var none Dataset[K, V]
	if err := d.checkGiven(def); err != nil {
		return none, err
	}
	if err := checkParams(reflect.TypeFor[P]()); err != nil {
		return none, fmt.Errorf("run %s: %w", def.name, err)
	}
	text, err := json.Marshal(&params) // by a pointer, so that it calls methods of pointers
	if err != nil {
		if value, ok := errors.AsType[*json.UnsupportedValueError](err); ok && value.Value.CanFloat() {
			err = fmt.Errorf("%s is not a finite number: JSON has none", noNumber(reflect.ValueOf(params), "params"))
		}
		return none, fmt.Errorf("run %s: parameters: %w", def.name, err)
	}
	step, err := d.driving.Step(d, def.name, text)
	if err != nil {
		return none, err
	}
	_, result, err := def.job(text) // for its codecs
	if err != nil {
		return none, err
	}
	return Dataset[K, V]{dir: step.Dir, step: step, key: result.key, value: result.value}, nil
}

func (d *Driver) checkGiven(def Defined) error {
	for _, given := range d.definitions {
		if given == def {
			return nil
		}
	}
	return fmt.Errorf("definition %s was not given to mapreduce.Drive: workers could not build its jobs", def.(bridge.Definition).Name())
}
