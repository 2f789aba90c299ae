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

// check is a comparison with a peer.
type check struct {
	name string
	peer string
	what string // the compared property
	gate string // the test that checks it without the peer
	run  func(ctx context.Context) (answers, error)
}

// answers are the answers of a peer.
type answers struct {
	version string
	lines   int               // of answers that were compared
	records map[string]string // files, as they are recorded from the peer
	differs []string          // where Quern differs
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
	state string
	why   string
}

// ask runs the check. It compares the peer's answers with the recorded ones, and with
// rewrite records them.
func (c check) ask(ctx context.Context, rewrite bool) result {
	r := result{check: c, state: same}
	var err error
	switch r.answers, err = c.run(ctx); {
	case err != nil && unavailable(err):
		r.state, r.why = skipped, err.Error()
		return r
	case err != nil:
		r.state, r.why = failed, err.Error()
		return r
	}
	found := r.answers.differs
	for _, file := range slices.Sorted(maps.Keys(r.records)) {
		now := r.records[file]
		old, err := os.ReadFile(file)
		if err != nil && !(rewrite && os.IsNotExist(err)) {
			r.state, r.why = failed, err.Error()
			return r
		}
		r.lines += lines(now)
		if now == string(old) && err == nil {
			continue
		}
		if !rewrite {
			found = append(found, fmt.Sprintf("%s: %s", file, difference(string(old), now)))
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(now), 0o666)); err != nil {
			r.state, r.why = failed, err.Error()
			return r
		}
		r.state = recorded
	}
	if len(found) > 0 {
		r.state, r.why = differs, strings.Join(found, "\n")
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

// difference describes the first line in which a record and the peer's answer differ.
func difference(old, now string) string {
	before, after := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range max(len(before), len(after)) {
		was, is := "nothing", "nothing"
		if i < len(before) {
			was = fmt.Sprintf("%q", before[i])
		}
		if i < len(after) {
			is = fmt.Sprintf("%q", after[i])
		}
		if was != is {
			return fmt.Sprintf("line %d was %s and is %s", i+1, was, is)
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

// show returns the table of results, followed by notes about them.
func show(results []result) string {
	var b strings.Builder
	b.WriteString("| check | program | compared answers | lines | result | `make test` checks them with |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		peer := strings.TrimSpace(r.peer + " " + r.version)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", r.name, peer, r.what, r.lines, r.state, r.gate)
	}
	for _, r := range results {
		if r.why != "" {
			fmt.Fprintf(&b, "\n%s %s:\n\n```\n%s\n```\n", r.name, r.state, strings.TrimSpace(r.why))
		}
	}
	return b.String()
}

// head is the beginning of docs/compat.md.
func head(now time.Time) string {
	return "# Comparison with Hadoop, DuckDB and Spark\n\n" +
		"`make compat` runs these programs, compares their answers with the recorded ones in `testdata` and with Quern's, and\n" +
		"writes this page. `go run ./integration/compat -rewrite` records new answers. `make test` does not need the programs:\n" +
		"it compares Quern with the recorded answers.\n\n" +
		"Results of " + now.UTC().Format(time.DateOnly) + ":\n\n"
}
