package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// check compares Quern, or recorded answers, with a peer.
type check struct {
	name     string
	peer     string
	compared string // property that is compared
	gate     string // test that checks it without the peer
	run      func(ctx context.Context) (answers, error)
}

// answers are the answers of a peer.
type answers struct {
	version     string
	lines       int               // of answers that were compared
	records     map[string]string // the peer's answers, by the file in which they are recorded
	differences []string          // of Quern's answers
}

// Results of a check.
const (
	same     = "same"
	differs  = "differs"
	recorded = "recorded"
	skipped  = "skipped"
	failed   = "failed"
)

type result struct {
	check
	answers
	state  string
	reason string
}

// ask runs the check and compares the peer's answers with the recorded ones. With rewrite, it
// records them.
func (c check) ask(ctx context.Context, rewrite bool) result {
	r := result{check: c, state: same}
	var err error
	switch r.answers, err = c.run(ctx); {
	case err != nil && unavailable(err):
		r.state, r.reason = skipped, err.Error()
		return r
	case err != nil:
		r.state, r.reason = failed, err.Error()
		return r
	}
	differences := r.answers.differences
	for _, file := range slices.Sorted(maps.Keys(r.records)) {
		now := r.records[file]
		old, err := os.ReadFile(file)
		if err != nil && !(rewrite && os.IsNotExist(err)) {
			r.state, r.reason = failed, err.Error()
			return r
		}
		r.lines += lines(now)
		if now == string(old) && err == nil {
			continue
		}
		if !rewrite {
			differences = append(differences, fmt.Sprintf("%s: %s", file, difference(string(old), now)))
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(now), 0o666)); err != nil {
			r.state, r.reason = failed, err.Error()
			return r
		}
		r.state = recorded
	}
	if len(differences) > 0 {
		r.state, r.reason = differs, strings.Join(differences, "\n")
	}
	return r
}

// lines counts the lines of a record, without comments and empty lines.
func lines(record string) (n int) {
	for line := range strings.Lines(record) {
		if line != "\n" && line[0] != '#' {
			n++
		}
	}
	return n
}

// difference describes the first line that differs between a record and the peer's answer.
func difference(old, now string) string {
	before, after := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range max(len(before), len(after)) {
		oldLine, newLine := "nothing", "nothing"
		if i < len(before) {
			oldLine = fmt.Sprintf("%q", before[i])
		}
		if i < len(after) {
			newLine = fmt.Sprintf("%q", after[i])
		}
		if oldLine != newLine {
			return fmt.Sprintf("line %d was %s and is %s", i+1, oldLine, newLine)
		}
	}
	return "no difference"
}

func count(results []result, state string) (n int) {
	for _, r := range results {
		if r.state == state {
			n++
		}
	}
	return n
}

// show returns the table of results, then the reasons of differences, failures and skips.
func show(results []result) string {
	var b strings.Builder
	b.WriteString("| check | program | compared answers | lines | result | `make test` checks them with |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		peer := strings.TrimSpace(r.peer + " " + r.version)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", r.name, peer, r.compared, r.lines, r.state, r.gate)
	}
	for _, r := range results {
		if r.reason != "" {
			fmt.Fprintf(&b, "\n%s %s:\n\n```\n%s\n```\n", r.name, r.state, strings.TrimSpace(r.reason))
		}
	}
	return b.String()
}

// head returns the beginning of docs/compat.md.
func head(now time.Time) string {
	return "# Comparison with Hadoop, DuckDB and Spark\n\n" +
		"`make compat` runs these programs, compares their answers with the recorded ones in `testdata` and with Quern's, and\n" +
		"writes this page. `go run ./integration/compat -rewrite` records new answers. `make test` does not need the programs:\n" +
		"it compares Quern with the recorded answers.\n\n" +
		"Results of " + now.UTC().Format(time.DateOnly) + ":\n\n"
}
