package mapreduce

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// How a program is told what it is run for.
const (
	modeVariable = "QUERN_MODE"
	planMode     = "plan"   // write the Submission to descriptor 3
	workerMode   = "worker" // serve a tracker on descriptors 3 (reading) and 4 (writing)
)

// protocolMarker tells package jobfile that a program is a job, and the protocol
// it speaks, which is wire.WorkerProtocol. It is linked into programs that call
// Main, because only Main leads to where it is printed.
const protocolMarker = "quern-job-protocol:1\n"

// Main runs the program as a job or flow, and exits. It parses the program's
// flags, to which it adds -input, -output, -D and -h, and calls build, in every
// process anew: what build returns must follow from the flags alone.
//
// A job writes to -output; of a flow's jobs, those that no other job reads write
// to directories of their names there. A job whose Output is set writes there.
//
// The exit code is 0 when the job has succeeded, 2 for bad usage, else 1.
func Main[P *Job | *Flow](build func() (P, error)) {
	os.Exit(run(func() (bridge.Compiler, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errors.New("the function given to mapreduce.Main built nothing")
		}
		return any(p).(bridge.Compiler), nil
	}))
}

func run(build func() (bridge.Compiler, error)) int {
	mode := os.Getenv(modeVariable)
	os.Unsetenv(modeVariable) // it is not meant for programs that the job starts
	flags, err := newJobFlags(flag.CommandLine)
	if err != nil {
		return fail(err)
	}
	p := &program{build: build, flags: flags}
	switch mode {
	case workerMode:
		p.worker = true
		return p.work()
	case planMode, "":
	default:
		return fail(usagef("%s=%q is no mode of this program, which speaks %s", modeVariable, mode, protocolMarker))
	}
	if err := p.flags.parse(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2 // package flag has said why
	}
	sub, err := p.submission(os.Args[1:])
	if err != nil {
		return fail(err)
	}
	if mode == planMode {
		return writePlan(sub)
	}
	// Workers are started by this path: the directory they run in is another.
	path, err := os.Executable()
	if err != nil {
		return fail(fmt.Errorf("find the program's own file: %w", err))
	}
	if sub.Program.Path, err = dfs.Clean(path); err != nil {
		return fail(fmt.Errorf("find the program's own file: %w", err))
	}
	return runEmbedded(sub, p.load)
}

// fail prints an error and gives the exit code for it.
func fail(err error) int {
	fmt.Fprintf(os.Stderr, "error: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
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

// work serves a tracker until the pipe from it closes.
func (p *program) work() int {
	in, out := os.NewFile(3, "pipe from tracker"), os.NewFile(4, "pipe to tracker")
	syscall.CloseOnExec(3) // what the job starts must not hold them open
	syscall.CloseOnExec(4)
	conn := wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
	if err := mrruntime.Serve(context.Background(), conn, p.load, builtin.FileSystems(), mrruntime.Options{}); err != nil {
		return fail(err)
	}
	return 0
}
