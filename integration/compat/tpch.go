package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/tpch/peers"
)

// shape is the size and layout of tables, and of the splits for reading them.
type shape struct {
	scale string
	parts int // files of each table, and reduces of each job
	split int // bytes, at most
}

// small writes the tables of [peers.Small].
func (q tpch) small(orders int) (dir string, err error) {
	dir = filepath.Join(q.dir, fmt.Sprint("orders-", orders))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	for name, rows := range peers.Small(orders) {
		if err := os.WriteFile(filepath.Join(dir, name+".tbl"), []byte(rows), 0o666); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// version returns the version of the peer's package.
func version(p *peers.Peer) string {
	_, version, _ := strings.Cut(p.Packages[0], "==")
	return version
}

// compared returns the run of a check that compares Quern's answers with the peer's.
func (q tpch) compared(fetch func(context.Context) (*peers.Peer, error), shapes ...shape) func(context.Context) (answers, error) {
	return func(ctx context.Context) (answers, error) {
		peer, err := fetch(ctx)
		if err != nil {
			return answers{}, err
		}
		generator, err := peers.DuckDB(ctx)
		if err != nil {
			return answers{}, err
		}
		a := answers{version: version(peer)}
		for _, s := range shapes {
			tables := filepath.Join(q.dir, fmt.Sprintf("scale-%s-%d", s.scale, s.parts))
			if err := generator.Generate(ctx, tables, s.scale, s.parts); err != nil {
				return answers{}, err
			}
			for _, query := range peers.Queries() {
				if err := q.ask(ctx, peer, tables, query, s, &a); err != nil {
					return answers{}, err
				}
			}
		}
		return a, nil
	}
}

// ask runs a query in the peer and in Quern, and adds the result to into.
func (q tpch) ask(ctx context.Context, peer *peers.Peer, tables string, query int, s shape, into *answers) error {
	want, err := peer.Ask(ctx, tables, query, cores)
	if err != nil {
		return err
	}
	got, err := q.quern(ctx, tables, query, s)
	if err != nil {
		return err
	}
	into.lines += lines(want.Lines)
	if got != want.Lines || got == "" {
		into.differences = append(into.differences, fmt.Sprintf("query %d at scale %s, %d files: the peer, then Quern: %s",
			query, s.scale, s.parts, difference(want.Lines, got)))
	}
	return nil
}

// quern returns Quern's answer, from an embedded run of examples/tpch.
func (q tpch) quern(ctx context.Context, tables string, query int, s shape) (string, error) {
	program := filepath.Join(q.dir, "tpch")
	if _, err := os.Stat(program); err != nil {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./examples/tpch")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build examples/tpch: %w\n%s", err, out)
		}
	}
	out := filepath.Join(q.dir, "out")
	if err := os.RemoveAll(out); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "-query", fmt.Sprint(query), "-tables", tables, "-output", out,
		"-D", fmt.Sprintf("mapreduce.job.reduces=%d", s.parts), "-D", fmt.Sprintf("mapreduce.input.fileinputformat.split.maxsize=%d", s.split))
	if printed, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, printed)
	}
	return peers.Parts(out)
}
