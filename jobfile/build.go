package jobfile

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

var (
	// ErrNoMain reports a directory without a main package.
	ErrNoMain = errors.New("holds no Go main package")
	// ErrBuild reports a package that does not compile; the compiler has printed the
	// reason.
	ErrBuild = errors.New("does not build")
	// ErrNoGo reports a missing go command.
	ErrNoGo = errors.New("cannot be built: no go command on PATH")
)

// Target says where a program is to run.
type Target int

const (
	// Here is this machine. The program is built as go run builds it, so that both use the same
	// compiled packages.
	Here Target = iota
	// Anywhere is any machine with this system and architecture. Without cgo, the file needs no dynamic
	// loader; without paths, equal sources give equal files.
	Anywhere
)

// Build compiles the main package in dir into the file out. The go command's output goes to messages.
// Errors match [ErrNoMain], [ErrBuild], [ErrNoGo], fs.ErrNotExist, or the error of ctx.
func Build(ctx context.Context, dir, out string, target Target, messages io.Writer) error {
	if err := checkMain(dir, target); err != nil {
		return err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("build %s: %w", dir, err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("%s %w; install Go, or pass a compiled job", dir, ErrNoGo)
	}
	args := []string{"build", "-buildvcs=false", "-o", out}
	env := append(os.Environ(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if target == Anywhere {
		args, env = append(args, "-trimpath"), append(env, "CGO_ENABLED=0")
	}
	cmd := exec.CommandContext(ctx, goCommand, append(args, ".")...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stdout, cmd.Stderr = messages, messages
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", dir, context.Cause(ctx))
		}
		return fmt.Errorf("%s %w: %w", dir, ErrBuild, err)
	}
	return nil
}

// checkMain gives a shorter error than the go command if the directory is not a main
// package.
func checkMain(dir string, target Target) error {
	if _, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("read job package: %w", err)
	}
	files := build.Default
	files.GOOS, files.GOARCH = runtime.GOOS, runtime.GOARCH
	files.CgoEnabled = files.CgoEnabled && target == Here
	pkg, err := files.ImportDir(dir, 0)
	var noGo *build.NoGoError
	switch {
	case errors.As(err, &noGo):
		return fmt.Errorf("%s %w: it has no Go files for %s/%s", dir, ErrNoMain, runtime.GOOS, runtime.GOARCH)
	case err != nil:
		return fmt.Errorf("%s %w: %w", dir, ErrBuild, err)
	case pkg.Name != "main":
		return fmt.Errorf("%s %w: its package is %s", dir, ErrNoMain, pkg.Name)
	}
	return nil
}
