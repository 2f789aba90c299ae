package testbed

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the time of a process from its start to its exit, and the processor time of it and its children.
type Usage struct{ Elapsed, Processor time.Duration }

// Used runs a command.
func Used(cmd *exec.Cmd) (Usage, error) {
	began := time.Now()
	if printed, err := cmd.CombinedOutput(); err != nil {
		return Usage{}, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, printed)
	}
	return Usage{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// UsedAgain is Used for a copy of the command from a clean start: without its output directory.
func UsedAgain(ctx context.Context, cmd *exec.Cmd, output string) (Usage, error) {
	if err := os.RemoveAll(output); err != nil {
		return Usage{}, err
	}
	again := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	again.Env = cmd.Env
	unix.Sync() // exclude the dirty pages of earlier runs
	return Used(again)
}

// Timed runs a command and returns the time of its whole process.
func Timed(cmd *exec.Cmd) (time.Duration, error) {
	used, err := Used(cmd)
	return used.Elapsed, err
}

// TimedAgain is Timed for a copy of the command, as in UsedAgain.
func TimedAgain(ctx context.Context, cmd *exec.Cmd, output string) (time.Duration, error) {
	used, err := UsedAgain(ctx, cmd, output)
	return used.Elapsed, err
}

// Alternate runs several measurements alternately, A B A B …, and returns the figures of each. It
// drops the figures of the first warm rounds.
func Alternate[T any](warm, runs int, things ...func() (T, error)) ([][]T, error) {
	figures := make([][]T, len(things))
	for i := range warm + runs {
		for k, measure := range things {
			figure, err := measure()
			if err != nil {
				return nil, err
			}
			if i >= warm {
				figures[k] = append(figures[k], figure)
			}
		}
	}
	return figures, nil
}

// WarmCache reads a file, or all files below a directory, into the page cache.
func WarmCache(name string) error {
	return filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

// Await polls a condition until it holds, for a limited time.
func Await(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no %s within %v: %w", what, limit, ctx.Err())
		}
	}
	return nil
}
