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
	// ErrNoMain reports a directory that holds no main package.
	ErrNoMain = errors.New("holds no Go main package")
	// ErrBuild reports a package that does not compile; the compiler has said why.
	ErrBuild = errors.New("does not build")
	// ErrNoGo reports that there is no go command to build with.
	ErrNoGo = errors.New("cannot be built: no go command on PATH")
)

// Build compiles the main package in dir into the file out, for this machine and
// as every job is compiled: without cgo, so that it needs no dynamic loader, and
// without paths or revisions, so that equal sources give equal files. What the
// go command prints goes to messages. Errors: [ErrNoMain], [ErrBuild], [ErrNoGo],
// or ctx's.
func Build(ctx context.Context, dir, out string, messages io.Writer) error {
	if err := checkMain(dir); err != nil {
		return err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("build %s: %w", dir, err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("%s %w; give a job that is built already", dir, ErrNoGo)
	}
	cmd := exec.CommandContext(ctx, goCommand, "build", "-trimpath", "-buildvcs=false", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = messages, messages
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", dir, context.Cause(ctx))
		}
		return fmt.Errorf("%s %w: %w", dir, ErrBuild, err)
	}
	return nil
}

// checkMain spares the go command's longer message where the directory is simply
// not what was meant.
func checkMain(dir string) error {
	if _, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("read job package: %w", err)
	}
	target := build.Default
	target.CgoEnabled, target.GOOS, target.GOARCH = false, runtime.GOOS, runtime.GOARCH
	pkg, err := target.ImportDir(dir, 0)
	var none *build.NoGoError
	switch {
	case errors.As(err, &none):
		return fmt.Errorf("%s %w: it has no Go files for %s/%s", dir, ErrNoMain, runtime.GOOS, runtime.GOARCH)
	case err != nil:
		return fmt.Errorf("%s %w: %w", dir, ErrBuild, err)
	case pkg.Name != "main":
		return fmt.Errorf("%s %w: its package is %s", dir, ErrNoMain, pkg.Name)
	}
	return nil
}
