// Command tpch answers TPC-H's queries with examples/tpch, compares every answer
// with DuckDB's, and prints times beside each other.
//
//	go run ./bench/tpch [-scale 0.01] [-runs 3] [-queries 1,3] [-spark] [-dir DIR]
//
// The generator, DuckDB and Spark are fetched into the project's cache; Spark runs
// only when asked for. Tables are read once before, so that they are in the page
// cache. A run is a whole process, from its start to its end. All engines have the
// processors that this command has, and are told how many: with fewer it is run under
// taskset. They take turns, and who begins changes from run to run; before each run
// what the one before it has written is written back. It asserts no timing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/tpch/peers"
)

func main() {
	b := &bench{cores: runtime.NumCPU()}
	flag.StringVar(&b.scale, "scale", "0.01", "TPC-H's scale `factor`; 1 is a gigabyte")
	flag.IntVar(&b.parts, "parts", 1, "`files` that each table is divided into")
	flag.IntVar(&b.runs, "runs", 3, "runs of each query; the median is printed")
	flag.StringVar(&b.dir, "dir", "", "working `directory`, kept with the tables; default: a temporary one, removed")
	queries := flag.String("queries", "1,3,5,6,10,13", "`numbers` of the queries")
	spark := flag.Bool("spark", false, "run Spark too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.run(ctx, *queries, *spark)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tpch:", err)
		os.Exit(1)
	}
}

type bench struct {
	scale              string
	parts, cores, runs int
	dir                string
	engines            []engine // Quern and DuckDB, and Spark when it is asked for
	begun              int      // rounds so far
}

func (b *bench) run(ctx context.Context, list string, spark bool) error {
	var queries []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-queries %s: %w", list, err)
		}
		queries = append(queries, n)
	}
	if b.runs < 1 {
		return fmt.Errorf("-runs %d: want 1 or more", b.runs)
	}
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "quern-tpch-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		b.dir = dir
	}
	if err := b.prepare(ctx, spark); err != nil {
		return err
	}
	name := fmt.Sprintf("TPC-H at scale %s, %d cores, median of %d", b.scale, b.cores, b.runs)
	return testbed.Measure([]testbed.Section{{Name: name, Measure: func() error { return b.table(ctx, queries) }}})
}

// prepare fetches the peers, builds our program and makes the tables.
func (b *bench) prepare(ctx context.Context, spark bool) error {
	duckdb, err := peers.DuckDB(ctx)
	if err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	b.engines = []engine{b.quern(), b.peer(duckdb, fmt.Sprintf("%d threads", b.cores))}
	if spark {
		p, err := peers.Spark(ctx)
		if err != nil {
			return err
		}
		b.engines = append(b.engines, b.peer(p, fmt.Sprintf("local[%d] and %d shuffle partitions", b.cores, b.cores)))
	}
	if err := duckdb.Generate(ctx, b.tables(), b.scale, b.parts); err != nil {
		return err
	}
	return readAll(b.tables())
}

// readAll reads files into the page cache.
func readAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

func (b *bench) tables() string {
	return filepath.Join(b.dir, fmt.Sprintf("scale-%s-%d", b.scale, b.parts))
}
