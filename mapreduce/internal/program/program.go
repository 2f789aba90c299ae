// Package program runs a job's program in one of three modes: it writes its plan for a
// client, it serves a task tracker as a worker, or it is an embedded run. It parses the
// flags and records the client's values for the workers. It uses jobs only through
// package bridge, which compiles them.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// The environment variable that selects the mode; unset: an embedded run.
const (
	modeVariable = "QUERN_MODE"
	planMode     = "plan"   // write the Submission to descriptor 3
	driveMode    = "drive"  // drive jobs of the client on descriptors 3 (reading) and 4 (writing)
	workerMode   = "worker" // serve a tracker on descriptors 3 (reading) and 4 (writing)
)

// protocolMarker shows package jobfile that a program file is a job, and its protocol,
// wire.WorkerProtocol. Only programs that call mapreduce.Main or [Worker] contain the marker,
// because only these lead to the code that prints it.
const protocolMarker = "quern-job-protocol:2\n"

// The functions of package mapreduce that call this package.
const (
	runs   = "Main"
	drives = "Drive"
)

// Run runs the program with the job that build returns, and returns the exit code.
func Run(build func() (bridge.Compiler, error)) int {
	p := &program{build: func(*wire.Step) (bridge.Compiler, error) { return build() }}
	mode, code := p.start(runs)
	if code >= 0 {
		return code
	}
	sub, err := p.submission(os.Args[1:])
	if err != nil {
		return fail(err)
	}
	if mode == planMode {
		return writePlan(sub)
	}
	if err := setPath(sub); err != nil {
		return fail(err)
	}
	return embedded.Run(sub, p.load)
}

// start selects the mode and parses the flags. A code of 0 or more ends the process.
func (p *program) start(caller string) (mode string, code int) {
	mode = os.Getenv(modeVariable)
	os.Unsetenv(modeVariable) // programs that the job starts must not inherit it
	var err error
	if p.flags, err = newJobFlags(flag.CommandLine, caller); err != nil {
		return mode, fail(err)
	}
	switch {
	case mode == workerMode:
		p.worker = true
		return mode, work(p.load)
	case mode == planMode, mode == "", mode == driveMode && caller == drives:
	default:
		return mode, fail(bridge.Usagef("%s=%q is not a mode of this program, which has protocol %s", modeVariable, mode, protocolMarker))
	}
	if err := p.flags.parse(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return mode, 0
		}
		return mode, 2 // package flag has printed the error
	}
	return mode, -1
}

// setPath sets the path of the program in a submission. Workers start from this path, in another
// directory: it is absolute.
func setPath(sub *wire.Submission) error {
	path, err := os.Executable()
	if err == nil {
		sub.Program.Path, err = dfs.Clean(path)
	}
	if err != nil {
		return fmt.Errorf("find the program's own file: %w", err)
	}
	return nil
}

// program is a job's program in one process.
type program struct {
	build  func(*wire.Step) (bridge.Compiler, error) // the step is nil, except for a driver
	worker bool                                      // this process is a worker
	quiet  bool                                      // print no notes

	mu         sync.Mutex // guards what follows: workers within one process share the flags
	flags      *jobFlags
	readsInput bool     // a job has read -input
	warned     []string // warnings about steps that were printed
	shared     bridge.Shared
}

// submission builds and describes the job, for a client.
func (p *program) submission(args []string) (*wire.Submission, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	compiled, err := p.compile(dir, nil, nil)
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

func (p *program) compile(dir string, step *wire.Step, shared *bridge.Shared) (*bridge.Compiled, error) {
	job, err := p.build(step)
	if err != nil {
		return nil, err
	}
	inputs, err := SplitList(p.flags.input)
	if err != nil {
		return nil, bridge.Usagef("-input %q: %w", p.flags.input, err)
	}
	settings := bridge.Settings{Inputs: inputs, Output: p.flags.output, Properties: p.flags.properties, Dir: dir, Shared: shared}
	if step != nil {
		settings.Output, settings.Step = step.Result, true
		settings.Properties = ofDefinition(settings.Properties, step.Definition)
	}
	compiled, err := job.Compile(settings)
	if step != nil {
		return compiled, err
	}
	if err == nil && p.flags.input != "" && !compiled.ReadsInput {
		jobs := compiled.Program.Plan.Jobs
		reads := fmt.Sprintf("job %s names its own input", jobs[0].Name)
		if len(jobs) > 1 {
			reads = "each job of the flow names its own input, or reads another job's result"
		}
		return nil, bridge.Usagef("-input %s would be ignored: %s; leave -input out", p.flags.input, reads)
	}
	return compiled, err
}

// load builds the job again with the client's arguments. If a flag still differs,
// because its default depends on the time or machine, load sets the client's value.
func (p *program) load(sub *wire.Submission) (*mrruntime.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.flags.restore(&sub.Program); err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("set the job's flags: %w", err))
	}
	compiled, err := p.compile(sub.Program.Dir, sub.Program.Step, p.shared.For(sub.Staging))
	if err != nil && p.worker {
		dir, _ := os.Getwd() // only for the message
		err = fmt.Errorf("%w (the client has built the job, but %s)", err, mrruntime.WorkerEnvironment(sub, dir))
	}
	if err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("build the job: %w", err))
	}
	return compiled.Program, nil
}

// fail prints an error and returns its exit code.
func fail(err error) int {
	fmt.Fprintf(os.Stderr, "error: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	if _, ok := errors.AsType[bridge.UsageError](err); ok {
		return 2
	}
	return 1
}

// exitCode prints an error and returns its exit code, or 0 without an error.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	return fail(err)
}

func writePlan(sub *wire.Submission) int {
	frame, err := wire.Append(nil, sub)
	if err != nil {
		return fail(err)
	}
	pipe := os.NewFile(3, "plan pipe")
	if _, err := pipe.Write(frame); err != nil {
		return fail(fmt.Errorf("write the plan: %w", err))
	}
	if err := pipe.Close(); err != nil {
		return fail(fmt.Errorf("write the plan: %w", err))
	}
	return 0
}

// profile writes a CPU profile until stop is called.
func profile(to io.Writer) (stop func(), err error) {
	return pprof.StopCPUProfile, pprof.StartCPUProfile(to)
}

// Worker serves a task tracker if this process is a worker, as the environment says. It is for a program that is not
// only a job. Other modes end with an error: the program has no job of its own.
func Worker(load mrruntime.Load) (code int, ended bool) {
	mode, set := os.LookupEnv(modeVariable)
	if !set {
		return 0, false
	}
	os.Unsetenv(modeVariable)
	if mode != workerMode {
		return fail(fmt.Errorf("this program is not a job, although it runs the tasks of others: a job calls mapreduce.Main (%s=%q, %s)", modeVariable, mode, strings.TrimSpace(protocolMarker))), true
	}
	return work(load), true
}

// work serves a tracker until the pipe from it closes, or until SIGTERM.
func work(load mrruntime.Load) int {
	in, out := os.NewFile(3, "pipe from tracker"), os.NewFile(4, "pipe to tracker")
	keepPipes() // programs that the job starts must not hold them open
	closeExecutable()
	adoptOrphans()
	conn := wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
	ctx := workerSignals()
	err := mrruntime.Serve(ctx, conn, load, builtin.FileSystems(), mrruntime.Options{Profile: profile})
	if ctx.Err() != nil {
		dieOfSIGTERM()
	}
	if err != nil {
		return fail(err)
	}
	return 0
}
