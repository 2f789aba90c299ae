// Command tpch answers TPC-H's queries with examples/tpch, compares every answer
// with DuckDB's, and prints times beside each other.
//
//	go run ./bench/tpch [-scale 0.01] [-cores 2] [-runs 3] [-queries 1,3] [-spark] [-dir DIR]
//
// The generator, DuckDB and Spark are fetched into the project's cache; Spark runs
// only when asked for. Tables are read once before, so that they are in the page
// cache. A run is a whole process, from its start to its end; ours and the peers'
// take turns. It asserts no timing.
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

	"github.com/quernmr/quern/integration/tpch/peers"
)

func main() {
	scale := flag.String("scale", "0.01", "TPC-H's scale `factor`; 1 is a gigabyte")
	parts := flag.Int("parts", 1, "`files` that each table is divided into")
	cores := flag.Int("cores", runtime.NumCPU(), "map and reduce `slots`, and the cores that peers may use")
	runs := flag.Int("runs", 3, "runs of each query; the median is printed")
	queries := flag.String("queries", "1,3,5,6,10,13", "`numbers` of the queries")
	spark := flag.Bool("spark", false, "run Spark too")
	dir := flag.String("dir", "", "working `directory`, kept with the tables; default: a temporary one, removed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	b := &bench{scale: *scale, parts: *parts, cores: *cores, runs: *runs, dir: *dir}
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
	peers              []*peers.Peer // DuckDB, and Spark when it is asked for
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
	if b.runs < 1 || b.cores < 1 {
		return fmt.Errorf("-runs %d -cores %d: want 1 or more", b.runs, b.cores)
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
	return b.table(ctx, queries)
}

// prepare fetches the peers, builds our program and makes the tables.
func (b *bench) prepare(ctx context.Context, spark bool) error {
	duckdb, err := peers.DuckDB(ctx)
	if err != nil {
		return err
	}
	b.peers = append(b.peers, duckdb)
	if spark {
		p, err := peers.Spark(ctx)
		if err != nil {
			return err
		}
		b.peers = append(b.peers, p)
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(b.tables()); err != nil {
		fresh := b.tables() + ".new" // so that what is cut off is not taken for whole
		if err := os.RemoveAll(fresh); err != nil {
			return err
		}
		if err := duckdb.Generate(ctx, fresh, b.scale, b.parts); err != nil {
			return err
		}
		if err := os.Rename(fresh, b.tables()); err != nil {
			return err
		}
	}
	return filepath.WalkDir(b.tables(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f) // into the page cache
		return err
	})
}

func (b *bench) tables() string {
	return filepath.Join(b.dir, fmt.Sprintf("scale-%s-%d", b.scale, b.parts))
}
