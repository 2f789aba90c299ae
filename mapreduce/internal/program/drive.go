package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"github.com/quernmr/quern/wire"
)

// Driving is what a program that drives jobs gets.
type Driving struct {
	*driver.Driver
	Inputs []string // -input
	Output string   // -output
	FS     dfs.FS
}

// Drive runs a program that drives jobs of these definitions, and returns the exit code. It calls drive
// in the client, never in a worker.
func Drive(drive func(context.Context, *Driving) error, definitions []bridge.Definition) int {
	byName := make(map[string]bridge.Definition)
	for _, def := range definitions {
		if byName[def.Name()] != nil {
			return fail(fmt.Errorf("two definitions given to mapreduce.Drive are named %s", def.Name()))
		}
		byName[def.Name()] = def
	}
	names := slices.Sorted(maps.Keys(byName))
	p := &program{build: func(step *wire.Step) (bridge.Compiler, error) {
		switch {
		case step == nil:
			return nil, errors.New("the program drives jobs, but the submission is of a program that calls mapreduce.Main: it was made by another program")
		case byName[step.Definition] == nil:
			return nil, fmt.Errorf("definition %s was not given to mapreduce.Drive, which has %s", step.Definition, strings.Join(names, ", "))
		}
		return byName[step.Definition].Build(step.Params)
	}}
	mode, code := p.start(drives)
	if code >= 0 {
		return code
	}
	dir, err := os.Getwd()
	if err != nil {
		return fail(fmt.Errorf("find the working directory: %w", err))
	}
	if err := p.checkDriver(names); err != nil {
		return fail(err)
	}
	plan := &wire.Submission{Program: wire.Program{Args: os.Args[1:], Flags: p.flags.record(), Dir: dir, Drives: names}}
	if mode == planMode {
		return writePlan(plan)
	}
	return p.drive(mode, plan.Program, drive)
}

// checkDriver checks flags before the first step.
func (p *program) checkDriver(names []string) error {
	for given := range p.flags.properties {
		if i := strings.LastIndexByte(given, ':'); i >= 0 && !slices.Contains(names, given[:i]) {
			return bridge.Usagef("-D %s: there is no definition %q; the program has %s", given, given[:i], strings.Join(names, ", "))
		}
	}
	if s := p.flags.session; s != "" && (strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || len(s) > 100) {
		return bridge.Usagef("-session %q: a name has letters, digits, - and _ only, at most 100", s)
	}
	return nil
}

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

// drive calls the driver function, embedded or for a client.
func (p *program) drive(mode string, program wire.Program, drive func(context.Context, *Driving) error) int {
	ctx, signals, stop := client.Interrupts(context.Background())
	defer stop()
	inputs, err := splitList(p.flags.input)
	if err != nil {
		return fail(bridge.Usagef("-input %q: %w", p.flags.input, err))
	}
	cfg := driver.Config{
		FS:         builtin.FileSystems(),
		Session:    p.flags.session,
		Program:    ownHash,
		Flags:      program.Flags,
		Note:       func(text string) { fmt.Fprintln(os.Stderr, client.Visible(text)) },
		Submission: func(step *wire.Step) (*wire.Submission, error) { return p.step(program, step) },
	}
	end := func() error { return nil }
	if mode == driveMode {
		remote, err := connect()
		if err != nil {
			return fail(err)
		}
		cfg.Cluster, end = remote, remote.close
	} else {
		steps := embedded.NewSteps(p.load, os.Stderr, client.Terminal(os.Stderr), signals.GiveUp)
		cfg.Cluster, end = &embeddedSteps{steps, p.flags.session != ""}, steps.Close
	}
	d := driver.New(cfg)
	err = drive(ctx, &Driving{Driver: d, Inputs: inputs, Output: p.flags.output, FS: cfg.FS})
	if failed := d.Err(); failed != nil {
		err = failed
	}
	if p.mu.Lock(); err == nil && len(inputs) > 0 && !p.readsInput {
		d.Note("warning: no step has read -input")
	}
	p.mu.Unlock()
	code := 0
	if err != nil {
		code = fail(err)
	}
	if err := errors.Join(d.Close(err != nil), end()); err != nil {
		return max(code, fail(err))
	}
	return code
}

// step builds and describes the job of a step.
func (p *program) step(program wire.Program, step *wire.Step) (*wire.Submission, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	copied := *step
	program.Step = &copied
	compiled, err := p.compile(program.Dir, step)
	if err != nil {
		return nil, err
	}
	p.readsInput = p.readsInput || compiled.ReadsInput
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
		return dir, err
	}
	if dir, err = embedded.Sessions(first.Plan.Jobs[0].Properties[property.EmbeddedDir]); err != nil {
		return "", err
	}
	return dir, driver.Sweep(builtin.FileSystems(), dir, time.Now())
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
