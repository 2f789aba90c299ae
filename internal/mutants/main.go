// Mutants plants faults in Quern's code, one after the other, and prints which test notices
// each. A fault that no gating test notices needs a test.
//
//	go run ./internal/mutants [-only REGEXP]
//
// The files testdata/*.txt, one for each part of Quern, have the mutants:
//
//	# A comment.
//	mutant NAME: what the fault does
//	file FILE
//	-	old line
//	+	new line
//	 	line that stays, to say which place is meant
//	test PACKAGES -run REGEXP
//
// The old lines, without their indentation, occur exactly once in the file. A mutant may have
// more files and more tests: a file line begins another change, and test lines run in order
// until a test fails. A test that exceeds the time limit has not noticed anything: it does not
// say what is wrong.
//
// The Go compiler reads the changed files by way of an overlay, so the work tree never changes.
// Tests have the seeds and settings of make test, but no race detector.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "plant only the mutants with names that match this `regexp`")
	limit := flag.Duration("limit", 5*time.Minute, "time limit of the tests of a mutant, once they are built")
	flag.Parse()
	names, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	mutants, err := readAll(root)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := runner{root: root, limit: *limit, clean: make(map[string]error)}
	const row = "%-34s | %-75s | %7s\n"
	fmt.Printf(row, "mutant", "noticed by", "seconds")
	planted, missed := 0, 0
	for _, m := range mutants {
		if !names.MatchString(m.name) {
			continue
		}
		planted++
		began := time.Now()
		noticed, err := r.try(ctx, m)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			missed++
			noticed = "NOT NOTICED: " + err.Error()
		}
		fmt.Printf(row, m.name, noticed, fmt.Sprintf("%.1f", time.Since(began).Seconds()))
	}
	switch {
	case planted == 0:
		return fmt.Errorf("-only %s matches no mutant", *only)
	case missed > 0:
		return fmt.Errorf("%d of %d mutants were not noticed", missed, planted)
	}
	fmt.Printf("tests noticed all %d mutants\n", planted)
	return nil
}

var errSurvived = errors.New("all tests pass")
