package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/quernmr/quern/wire"
)

// Driven says how to run a program that drives jobs.
type Driven struct {
	Program  string // executable
	Args     []string
	Sessions string // what the URL of a session has before its name
	Sweep    bool   // the program removes expired sessions there
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	GiveUp   <-chan struct{} // as in Config
	// Run runs a submission of the program as Do does, and Find looks for one as Find does.
	Run, Find func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error)
	Failed    func(text string) // gets the error that the program also prints; or nil
}

// Drive starts a program that drives jobs, runs its submissions until it ends, and returns its exit code.
// If ctx ends, it interrupts the program, which kills its jobs. GiveUp kills the program.
func Drive(ctx context.Context, cfg Driven) (code int, err error) {
	toProgram, out, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", cfg.Program, err)
	}
	in, fromProgram, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("run %s: %w", cfg.Program, err), toProgram.Close(), out.Close())
	}
	cmd := exec.Command(cfg.Program, cfg.Args...)
	cmd.Env = append(os.Environ(), "QUERN_MODE=drive")
	cmd.ExtraFiles = []*os.File{toProgram, fromProgram} // descriptors 3 and 4
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.Stdin, cfg.Stdout, cfg.Stderr
	cmd.WaitDelay = time.Second // a child of the program may hold its output open
	ownGroup(cmd)
	cmd.Cancel = nil
	err = cmd.Start()
	toProgram.Close()
	fromProgram.Close()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("run %s: %w", cfg.Program, err), in.Close(), out.Close())
	}
	ended := passInterrupts(ctx, cmd, cfg.GiveUp)
	s := &drivenRuns{Driven: cfg, conn: wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) }), kill: make(map[int]context.CancelCauseFunc)}
	served := s.serve(ctx)
	err = cmd.Wait()
	close(ended)
	endGroup(cmd)
	code, err = programEnd(cfg.Program, err)
	return code, errors.Join(served, err)
}

// DriveAlone is Drive without a cluster: the program runs its jobs embedded, by itself.
func DriveAlone(ctx context.Context, cfg Driven) (code int, err error) {
	cmd := exec.Command(cfg.Program, cfg.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.Stdin, cfg.Stdout, cfg.Stderr
	ownGroup(cmd)
	cmd.Cancel = nil
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", cfg.Program, err)
	}
	ended := passInterrupts(ctx, cmd, cfg.GiveUp)
	err = cmd.Wait()
	close(ended)
	return programEnd(cfg.Program, err)
}

// passInterrupts tells a program to end when ctx ends, and kills it when giveUp is closed. The caller
// closes ended when the program has ended.
func passInterrupts(ctx context.Context, cmd *exec.Cmd, giveUp <-chan struct{}) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			interrupt(cmd)
		}
		select {
		case <-ended:
		case <-giveUp:
			endGroup(cmd)
		}
	}()
	return ended
}

// programEnd returns the exit code of a program, which has printed why it failed.
func programEnd(program string, err error) (code int, _ error) {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	case ended && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	}
	return 1, fmt.Errorf("%s: %w", program, err)
}

// drivenRuns are the submissions of a program that drives jobs.
type drivenRuns struct {
	Driven
	conn *wire.Conn
	runs sync.WaitGroup

	mu   sync.Mutex
	kill map[int]context.CancelCauseFunc // of those that run
}

// serve answers the program until it closes its pipe. Then it kills the jobs that still run.
func (s *drivenRuns) serve(interrupted context.Context) error {
	ctx, end := context.WithCancelCause(context.WithoutCancel(interrupted))
	defer s.conn.Close()
	defer s.runs.Wait()
	defer end(errors.New("the program that drives the job has ended"))
	for {
		m, err := s.conn.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read from %s: %w", s.Program, err)
		}
		switch m := m.(type) {
		case *wire.DriveHello:
			if m.Protocol != wire.DriveProtocol {
				return fmt.Errorf("%s speaks drive protocol %d, this mrsubmit %d: build both from one version", s.Program, m.Protocol, wire.DriveProtocol)
			}
			err = s.conn.Send(&wire.DriveBegin{Sessions: s.Sessions, Sweep: s.Sweep})
		case *wire.DriveRun:
			running, cancel := context.WithCancelCause(ctx)
			s.mu.Lock()
			s.kill[m.Run] = cancel
			s.mu.Unlock()
			s.runs.Go(func() { s.run(running, m) })
		case *wire.DriveKill:
			cause := context.Cause(interrupted)
			if cause == nil {
				cause = errors.New("the program that drives the job killed it")
			}
			s.mu.Lock()
			if cancel := s.kill[m.Run]; cancel != nil {
				cancel(cause)
			}
			s.mu.Unlock()
		case *wire.DriveFailed:
			if s.Failed != nil {
				s.Failed(m.Error)
			}
		default:
			return fmt.Errorf("%s sent an unexpected %T", s.Program, m)
		}
		if err != nil {
			return fmt.Errorf("answer %s: %w", s.Program, err)
		}
	}
}

func (s *drivenRuns) run(ctx context.Context, m *wire.DriveRun) {
	answer := &wire.DriveEnded{Run: m.Run}
	run := s.Run
	if m.Find {
		run = s.Find
	}
	var err error
	if answer.Jobs, err = run(ctx, &m.Submission); err != nil {
		answer.Error = wire.Truncate(err.Error(), wire.MaxText)
	}
	s.mu.Lock()
	s.kill[m.Run](nil)
	delete(s.kill, m.Run)
	s.mu.Unlock()
	_ = s.conn.Send(answer) // if the program has ended, it does not need the answer
}
