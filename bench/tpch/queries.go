package tpch

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// Indexes of engines.
const (
	quern  = 0
	duckdb = 1 // the reference for answers
)

// table prints a line for each query, and the sums.
func (b *bench) table() error {
	columns := []string{"query", "quern"}
	fmt.Printf("All have the same %d processors.", b.cores)
	for _, e := range b.engines {
		fmt.Printf(" %s: %s.", e.name, e.cores)
		if e.name != b.engines[quern].name {
			columns = append(columns, e.name, e.name+" without start", e.name+" / quern")
		}
	}
	fmt.Print("\n\n")
	testbed.Table(columns...)
	sum := make([]times, len(b.engines))
	for _, q := range b.queries {
		t, err := b.query(q)
		if err != nil {
			return fmt.Errorf("query %d: %w", q, err)
		}
		row(fmt.Sprint(q), t)
		for i := range sum {
			sum[i].whole += t[i].whole
			sum[i].alone += t[i].alone
		}
	}
	row("all", sum)
	return nil
}

// times is an engine's times for a query.
type times struct {
	whole, alone time.Duration // of the process, and of the query without its start
}

func row(name string, t []times) {
	columns := []string{name, testbed.Seconds(t[quern].whole)}
	for _, peer := range t[duckdb:] {
		columns = append(columns, testbed.Seconds(peer.whole), testbed.Seconds(peer.alone), testbed.Ratio(peer.whole, t[quern].whole))
	}
	testbed.Row(columns...)
}

// query alternates the engines and returns the medians of their times. Every answer must equal
// DuckDB's.
func (b *bench) query(q int) ([]times, error) {
	whole, alone := make([][]time.Duration, len(b.engines)), make([][]time.Duration, len(b.engines))
	for range b.Runs {
		lines := make([]string, len(b.engines))
		for k := range b.engines {
			i := (k + b.rounds) % len(b.engines) // rotate, so that no engine always follows the same one
			a, err := b.engines[i].answer(q)
			if err != nil {
				return nil, err
			}
			lines[i] = a.Lines
			whole[i], alone[i] = append(whole[i], a.Whole), append(alone[i], a.Query)
		}
		b.rounds++
		for i, e := range b.engines {
			if err := checkAnswer(e.name, lines[i], lines[duckdb]); err != nil {
				return nil, err
			}
		}
	}
	t := make([]times, len(b.engines))
	for i := range t {
		t[i] = times{testbed.Median(whole[i]), testbed.Median(alone[i])}
	}
	return t, nil
}

func checkAnswer(engine, got, want string) error {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Errorf("line %d of %s's answer is not DuckDB's:\n%q\n%q", i+1, engine, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		return fmt.Errorf("%s's answer has %d lines, DuckDB's has %d", engine, len(g)-1, len(w)-1)
	}
	return nil
}
