// Command cluster measures what a cluster of processes promises: how soon work
// goes on after the leader is killed, how long a small job takes, what passes
// through the log, and how soon a new tracker serves. Three job trackers and three
// task trackers run on loopback, on this machine, for each figure.
//
//	go run ./bench/cluster [-runs 10] [-only REGEXP] [-size 1G] [-dir DIR]
//
// Outputs are compared before a figure is printed. It asserts no timing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/integration/processes"
)

func main() {
	runs := flag.Int("runs", 10, "`times` that each event is measured; median and worst are printed")
	only := flag.String("only", ".", "`regexp` of the figures to measure")
	size := flag.String("size", "1G", "`bytes` that are sorted with and without TLS, with K, M or G")
	dir := flag.String("dir", "", "working `directory`, kept; default: a temporary one, removed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *runs, *only, *size, *dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/cluster:", err)
		os.Exit(1)
	}
}

// figure is one row, or several, of the table.
type figure struct {
	name    string
	measure func(b *bench) (rows []string, err error)
}

func figures() []figure {
	return []figure{
		{"leader killed under a job of 60 tasks", (*bench).failover},
		{"word count of 1 KB on a warm cluster", (*bench).small},
		{"what passes through the log", (*bench).log},
		{"a tracker joins", (*bench).join},
		{"TLS: a sort, a small job and a fetch with and without", (*bench).tls},
	}
}

type bench struct {
	ctx  context.Context
	dir  string
	runs int
	size int64
	made int // clusters so far
}

func run(ctx context.Context, runs int, only, size, dir string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	b := &bench{ctx: ctx, dir: dir, runs: runs}
	if b.size, err = input.Size(size); err != nil {
		return err
	}
	if err := os.MkdirAll(b.programs(), 0o777); err != nil {
		return err
	}
	if err := processes.Build(b.programs(), "examples/wordcount", "examples/sort", "integration/trial/paced"); err != nil {
		return err
	}
	fmt.Println("| figure | median | worst | to reach |")
	fmt.Println("|---|---|---|---|")
	for _, f := range figures() {
		if !wanted.MatchString(f.name) {
			continue
		}
		rows, err := f.measure(b)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		for _, row := range rows {
			fmt.Println("| " + row + " |")
		}
	}
	return nil
}

func (b *bench) programs() string { return filepath.Join(b.dir, "programs") }

// cluster starts three job trackers and three task trackers with two map and two
// reduce slots each.
func (b *bench) cluster(configure ...func(*processes.Config)) (*processes.Cluster, error) {
	b.made++
	cfg := processes.Config{
		Programs: b.programs(), Dir: filepath.Join(b.dir, fmt.Sprintf("cluster%d", b.made)),
		JobTrackers: 3, TaskTrackers: 3,
	}
	for _, f := range configure {
		f(&cfg)
	}
	return processes.Start(b.ctx, cfg)
}

func row(columns ...string) string { return strings.Join(columns, " | ") }
