package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/driver"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Driving is what a program that drives jobs gets.
type Driving struct {
	*driver.Driver
	Inputs []string // -input
	Output string   // -output
}

// Drive runs a program that drives jobs of these definitions, and returns the exit code. It calls drive
// in the client, never in a worker.
func Drive(drive func(context.Context, *Driving) error, definitions []bridge.Definition) int {
	p, names, err := newDriver(definitions)
	if err != nil {
		return fail(err)
	}
	mode, code := p.start(drives)
	if code >= 0 {
		return code
	}
	described, err := p.describe(os.Args[1:], names)
	if err != nil {
		return fail(err)
	}
	if mode == planMode {
		return writePlan(&wire.Submission{Program: *described})
	}
	ctx, signals, stop := client.Interrupts(context.Background())
	defer stop()
	if mode == driveMode {
		cluster, err := connect()
		if err != nil {
			return fail(err)
		}
		err = p.drive(ctx, cluster, described, drive)
		return exitCode(errors.Join(err, cluster.close(err)))
	}
	steps := embedded.NewSteps(p.load, os.Stderr, client.Terminal(os.Stderr), signals.GiveUp, p.flags.quiet)
	return exitCode(p.driveEmbedded(ctx, steps, described, drive))
}

// DriveInProcess is Drive for tests: it takes settings instead of the command line, runs all attempts in
// this process, and prints nothing. Inputs are one path each, without commas.
func DriveInProcess(ctx context.Context, s bridge.Settings, drive func(context.Context, *Driving) error, definitions []bridge.Definition) error {
	p, names, err := newDriver(definitions)
	if err != nil {
		return err
	}
	p.quiet = true
	if p.flags, err = newJobFlags(flag.NewFlagSet("driver", flag.ContinueOnError), drives); err != nil {
		return err
	}
	p.flags.parsed = true
	p.flags.input, p.flags.output, p.flags.session = strings.Join(s.Inputs, ","), s.Output, s.Session
	p.flags.properties = maps.Clone(s.Properties)
	if p.flags.properties == nil {
		p.flags.properties = make(map[string]string)
	}
	p.flags.properties[property.InProcess] = "true"
	described, err := p.describe(nil, names)
	if err != nil {
		return err
	}
	steps := embedded.NewSteps(p.load, io.Discard, nil, nil, true)
	return p.driveEmbedded(ctx, steps, described, drive)
}

// driveEmbedded calls the driver function for a cluster in this process, unless there can be none.
func (p *program) driveEmbedded(ctx context.Context, steps *embedded.Steps, described *wire.Program, drive func(context.Context, *Driving) error) error {
	if err := embedded.Supported(); err != nil {
		return err
	}
	err := p.drive(ctx, &embeddedSteps{steps, p.flags.session != ""}, described, drive)
	return errors.Join(err, steps.Close())
}

// newDriver returns the program, and the names of the definitions.
func newDriver(definitions []bridge.Definition) (*program, []string, error) {
	byName := make(map[string]bridge.Definition)
	for _, def := range definitions {
		if byName[def.Name()] != nil {
			return nil, nil, fmt.Errorf("two definitions given to mapreduce.Drive are named %s", def.Name())
		}
		byName[def.Name()] = def
	}
	names := slices.Sorted(maps.Keys(byName))
	return &program{build: func(step *wire.Step) (bridge.Compiler, error) {
		switch {
		case step == nil:
			return nil, errors.New("the program drives jobs, but the submission is of a program that calls mapreduce.Main")
		case byName[step.Definition] == nil:
			return nil, fmt.Errorf("definition %s was not given to mapreduce.Drive, which has %s", step.Definition, strings.Join(names, ", "))
		}
		return byName[step.Definition].Build(step.Params)
	}}, names, nil
}

// describe checks the flags, and describes the program for submissions.
func (p *program) describe(args, names []string) (*wire.Program, error) {
	for given := range p.flags.properties {
		if i := strings.LastIndexByte(given, ':'); i >= 0 && !slices.Contains(names, given[:i]) {
			return nil, bridge.Usagef("-D %s: there is no definition %q; the program has %s", given, given[:i], strings.Join(names, ", "))
		}
	}
	if s := p.flags.session; strings.Trim(s, sessionLetters) != "" || len(s) > maxSession {
		return nil, bridge.Usagef("-session %q: a name has letters, digits, - and _ only, at most %d", s, maxSession)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	return &wire.Program{Args: args, Flags: p.flags.record(), Dir: dir, Drives: names}, nil
}

const (
	sessionLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	maxSession     = 100
)

// ofDefinition returns the properties of -D without those for other definitions.
func ofDefinition(properties map[string]string, definition string) map[string]string {
	own := make(map[string]string)
	for given, value := range properties {
		if i := strings.LastIndexByte(given, ':'); i < 0 || given[:i] == definition {
			own[given] = value
		}
	}
	return own
}

// drive calls the driver function.
func (p *program) drive(ctx context.Context, cluster driver.Cluster, described *wire.Program, drive func(context.Context, *Driving) error) error {
	inputs, err := SplitList(p.flags.input)
	if err != nil {
		return bridge.Usagef("-input %q: %w", p.flags.input, err)
	}
	output, err := p.output()
	if err != nil {
		return err
	}
	files := builtin.FileSystems()
	d := driver.New(driver.Config{
		Cluster:    cluster,
		FS:         files,
		Session:    p.flags.session,
		Program:    ownHash,
		Keyed:      keyed(described),
		Output:     output,
		Vacant:     func() error { return mrruntime.CheckOutput(files, output) },
		Note:       p.note,
		Submission: func(step *wire.Step) (*wire.Submission, error) { return p.step(*described, step) },
	})
	if err := d.Begin(); err != nil {
		return err
	}
	err = drive(ctx, &Driving{Driver: d, Inputs: inputs, Output: p.flags.output})
	if failed := d.Err(); failed != nil {
		err = failed
	}
	p.mu.Lock()
	unread := err == nil && len(inputs) > 0 && !p.readsInput
	p.mu.Unlock()
	if unread {
		p.note("warning: no step has read -input")
	}
	if err == nil && output != "" && !d.Wrote() {
		p.note("warning: no step has written -output")
	}
	return errors.Join(err, d.Close(err != nil))
}

// keyed returns the values by which a session knows a step again, besides its definition and parameters. It has the
// directory, to which paths are relative, and leaves out flags that change no result.
func keyed(described *wire.Program) map[string]string {
	values := maps.Clone(described.Flags)
	maps.DeleteFunc(values, func(flag, _ string) bool {
		given, isProperty := strings.CutPrefix(flag, propertyPrefix)
		if !isProperty {
			return flag == "output" || flag == "quiet" // a job that writes to -output has it in its parameters
		}
		return property.IsEmbedded(given[strings.LastIndexByte(given, ':')+1:])
	})
	values["directory="] = described.Dir // no flag has such a name
	return values
}

// output returns the URL of -output.
func (p *program) output() (string, error) {
	if p.flags.output == "" {
		return "", nil
	}
	on, err := dfs.CleanDefault(p.flags.properties[property.DefaultFS])
	if err != nil {
		return "", err
	}
	url, err := dfs.CleanOn(on, p.flags.output)
	if err != nil {
		return "", fmt.Errorf("output: %w", err)
	}
	return url, nil
}

func (p *program) note(text string) {
	if !p.quiet && !p.flags.quiet {
		fmt.Fprintln(os.Stderr, client.Visible(text))
	}
}

// warn prints warnings about a step, unless an earlier step has caused them. The caller holds p.mu.
func (p *program) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(p.warned, w) {
			p.warned = append(p.warned, w)
			p.note("warning: " + w)
		}
	}
}

// step builds and describes the job of a step.
func (p *program) step(program wire.Program, step *wire.Step) (*wire.Submission, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.flags.checkUnchanged(program.Flags); err != nil {
		return nil, err
	}
	copied := *step
	program.Step, program.Drives = &copied, nil
	compiled, err := p.compile(program.Dir, step, nil)
	if err != nil {
		return nil, err
	}
	p.readsInput = p.readsInput || compiled.ReadsInput
	p.warn(compiled.Warnings)
	sub := &wire.Submission{Plan: compiled.Program.Plan, Program: program}
	return sub, setPath(sub)
}

// embeddedSteps is the cluster of a driver in this process.
type embeddedSteps struct {
	*embedded.Steps
	named bool // the session has a name, and may outlive the cluster
}

func (e *embeddedSteps) Sessions(first *wire.Submission) (string, error) {
	dir, err := e.Start(first)
	if err != nil || !e.named {
		return dir + "/", err
	}
	if dir, err = embedded.Sessions(first.Plan.Jobs[0].Properties[property.EmbeddedDir]); err != nil {
		return "", err
	}
	return dir + "/", driver.Sweep(builtin.FileSystems(), dir, time.Now())
}

// ownHash returns the SHA-256 of this process's executable.
func ownHash() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program's own file: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the program's own file: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the program's own file: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
