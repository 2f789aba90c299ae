package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runner runs tests in the module with and without mutants.
type runner struct {
	root  string
	limit time.Duration
	clean map[string]error // results of tests without a mutant
}

// try plants a mutant and returns the first test that fails, or an error if none does.
func (r *runner) try(ctx context.Context, m *mutant) (noticed string, err error) {
	changed, err := m.apply(r.root)
	if err != nil {
		return "", err
	}
	overlay, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(overlay)
	var replaced struct{ Replace map[string]string }
	replaced.Replace = make(map[string]string)
	for file, text := range changed {
		copied := filepath.Join(overlay, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(copied, []byte(text), 0o666); err != nil {
			return "", err
		}
		replaced.Replace[filepath.Join(r.root, file)] = copied
	}
	list, err := json.Marshal(replaced)
	if err != nil {
		return "", err
	}
	listFile := filepath.Join(overlay, "overlay.json")
	if err := os.WriteFile(listFile, list, 0o666); err != nil {
		return "", err
	}
	for _, test := range m.tests {
		if err := r.passes(ctx, test); err != nil {
			return "", err
		}
		switch result := r.test(ctx, test, listFile); {
		case result.err != nil:
			return "", result.err
		case result.late:
			return "", fmt.Errorf("timeout in %s", cmp.Or(result.failed, strings.Join(test, " ")))
		case result.failed != "":
			return result.failed, nil
		}
	}
	return "", errSurvived
}

// passes checks, once for each line of tests, that they pass without a mutant.
func (r *runner) passes(ctx context.Context, test []string) error {
	key := strings.Join(test, " ")
	err, known := r.clean[key]
	if !known {
		switch result := r.test(ctx, test, ""); {
		case result.err != nil:
			err = result.err
		case result.none:
			err = fmt.Errorf("no test matches %s", key)
		case result.failed != "":
			err = fmt.Errorf("%s fails without the mutant", result.failed)
		}
		r.clean[key] = err
	}
	return err
}

// result is what tests have come to.
type result struct {
	failed string // the first test that failed, with its package; empty if all pass
	late   bool   // the time limit ended them
	none   bool   // there were no tests to run
	err    error  // they could not be built or run
}

// test runs tests with an overlay, if any. Commands that the tests run have the overlay too.
func (r *runner) test(ctx context.Context, test []string, overlay string) result {
	// The limit is for the tests; a build on a busy machine takes minutes.
	ctx, cancel := context.WithTimeout(ctx, r.limit+10*time.Minute)
	defer cancel()
	args := []string{"test", "-json", "-vet=off", "-failfast", "-timeout", r.limit.String()}
	for _, arg := range test {
		args = append(args, r.packageArg(arg))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	flags := os.Getenv("GOFLAGS") + " -buildvcs=false -trimpath"
	if overlay != "" {
		flags += " -overlay=" + overlay
	}
	cmd.Env = append(os.Environ(), "GOFLAGS="+flags, "CGO_ENABLED=0", "RAPID_SEED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	res := readEvents(printed)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &exit) || ctx.Err() != nil:
		res.err = fmt.Errorf("go %s: %w", strings.Join(args, " "), cmp.Or(ctx.Err(), err))
	case res.err == nil && res.failed == "":
		res.err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return res
}

// packageArg makes a package within the module, such as shuffle, an argument of go test.
func (r *runner) packageArg(arg string) string {
	if stat, err := os.Stat(filepath.Join(r.root, arg)); err == nil && stat.IsDir() {
		return "./" + arg
	}
	return arg
}

// readEvents reads what go test -json prints.
func readEvents(printed []byte) result {
	var res result
	var built strings.Builder
	var failures []string
	ran := false
	for line := range bytes.Lines(printed) {
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		name := strings.TrimSuffix(inModule(event.Package)+"."+event.Test, ".")
		switch event.Action {
		case "build-output":
			built.WriteString(event.Output)
		case "build-fail":
			res.err = fmt.Errorf("does not build: %s", strings.Join(strings.Fields(built.String()), " "))
		case "run":
			ran = true
		case "output":
			res.late = res.late || strings.HasPrefix(event.Output, "panic: test timed out")
		case "fail":
			failures = append(failures, name)
		}
	}
	// A subtest fails before its test, and that before its package.
	if len(failures) > 0 {
		res.failed = failures[0]
	}
	res.none = !ran
	return res
}

const module = "github.com/quernmr/quern/"

func inModule(importPath string) string { return strings.TrimPrefix(importPath, module) }
