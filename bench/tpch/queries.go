package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// Places among the engines.
const (
	quern  = 0
	duckdb = 1 // whose answers are the truth
)

// table prints a line for each query, and the sums.
func (b *bench) table(ctx context.Context, queries []int) error {
	columns := []string{"query", "quern"}
	fmt.Printf("All have the same %d processors.", b.cores)
	for _, e := range b.engines {
		fmt.Printf(" %s: %s.", e.name, e.cores)
		if e.name != b.engines[quern].name {
			columns = append(columns, e.name, "its query alone", e.name+" / quern")
		}
	}
	fmt.Print("\n\n")
	testbed.Table(columns...)
	sum := make([]times, len(b.engines))
	for _, q := range queries {
		t, err := b.query(ctx, q)
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

// times are an engine's of a query.
type times struct {
	whole, alone time.Duration // of the process, and of the query without its start
}

func row(name string, t []times) {
	columns := []string{name, seconds(t[quern].whole)}
	for _, peer := range t[duckdb:] {
		columns = append(columns, seconds(peer.whole), seconds(peer.alone), fmt.Sprintf("%.2f", peer.whole.Seconds()/t[quern].whole.Seconds()))
	}
	testbed.Row(columns...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// query has every engine answer one in turn, and gives the medians. Every answer must be
// DuckDB's.
func (b *bench) query(ctx context.Context, q int) ([]times, error) {
	whole, alone := make([][]time.Duration, len(b.engines)), make([][]time.Duration, len(b.engines))
	for range b.runs {
		lines := make([]string, len(b.engines))
		for k := range b.engines {
			i := (k + b.begun) % len(b.engines) // so that none is always behind the same one
			a, err := b.engines[i].ask(ctx, q)
			if err != nil {
				return nil, err
			}
			lines[i] = a.Lines
			whole[i], alone[i] = append(whole[i], a.Whole), append(alone[i], a.Query)
		}
		b.begun++
		for i, e := range b.engines {
			if err := same(e.name, lines[i], lines[duckdb]); err != nil {
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

func same(who, got, want string) error {
	if got == want {
		return nil
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Errorf("line %d of %s's answer is not DuckDB's:\n%q\n%q", i+1, who, at(g, i), at(w, i))
		}
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
