package main

import (
	"cmp"
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
	peer     string // programs, with commas
	compared string // property that is compared
	gate     string // test that checks it without the peer
	run      func(ctx context.Context) (answers, error)
}

// answers are the answers of a peer.
type answers struct {
	version     string            // of each program, with commas
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

const tableHead = "| check | program | compared answers | lines | result | run on | `make test` checks them with |\n|---|---|---|---|---|---|---|\n"

// row returns the result's row in a table.
func (r *result) row(day string) string {
	programs, versions := strings.Split(r.peer, ", "), strings.Split(r.version, ", ")
	for i := range min(len(programs), len(versions)) {
		programs[i] = strings.TrimSpace(programs[i] + " " + versions[i])
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %s |\n", r.name, strings.Join(programs, ", "), r.compared, r.lines, r.state, day, r.gate)
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// show returns the table of results, then the reasons of differences, failures and skips.
func show(results []result, now time.Time) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, r := range results {
		b.WriteString(r.row(day(now)))
	}
	for _, r := range results {
		if r.reason != "" {
			fmt.Fprintf(&b, "\n%s %s:\n\n```\n%s\n```\n", r.name, r.state, strings.TrimSpace(r.reason))
		}
	}
	return b.String()
}

// updated returns docs/compat.md with the rows of new results. Other checks keep their rows.
func updated(old string, all []check, results []result, now time.Time) string {
	rows := make(map[string]string) // by the check's name
	for line := range strings.Lines(old) {
		if fields := strings.SplitN(line, " | ", 2); len(fields) == 2 {
			rows[strings.TrimPrefix(fields[0], "| ")] = line
		}
	}
	for _, r := range results {
		if r.state != skipped {
			rows[r.name] = r.row(day(now))
		}
	}
	var b strings.Builder
	b.WriteString("# Comparison with Hadoop, DuckDB and Spark\n\n" +
		"`make compat` runs these programs, compares their answers with the recorded ones in `testdata` and with Quern's, and\n" +
		"writes this page. `go run ./integration/compat -only NAMES` runs some checks, and `-rewrite` records new answers.\n" +
		"`make test` does not need the programs: it compares Quern with the recorded answers.\n\n" + tableHead)
	for _, c := range all {
		never := result{check: c, state: "never run"}
		b.WriteString(cmp.Or(rows[c.name], never.row("–")))
	}
	return b.String()
}
