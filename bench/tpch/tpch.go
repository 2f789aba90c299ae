// Package tpch answers TPC-H's queries with examples/tpch, compares every answer with DuckDB's,
// and prints the times of both.
//
// It downloads the generator, DuckDB and, with -spark, Spark into the project's cache. It reads
// the tables once, so that they are in the page cache. A run is a whole process, from start to
// end. All engines are set to the number of this command's processors; for fewer, run it under
// taskset. Engines alternate, and each round begins with another one. Before each run the dirty
// pages of the run before are written back.
package tpch

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/tpch/peers"
)

type bench struct {
	*testbed.Bench
	list    string // -queries
	spark   bool
	parts   int // files of each table
	queries []int
	cores   int
	engines []engine // Quern and DuckDB, and Spark with -spark
	rounds  int      // rounds so far
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{cores: runtime.NumCPU()}
	return testbed.Section{
		Name: "tpch", About: "TPC-H's queries beside DuckDB and Spark",
		Runs: 3, Scale: "0.01",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&b.parts, "parts", 1, "`files` that each table is divided into")
			f.StringVar(&b.list, "queries", "1,3,5,6,10,13", "`numbers` of the queries")
			f.BoolVar(&b.spark, "spark", false, "run Spark too")
		},
		Programs: []string{"examples/tpch", "examples/revenue"},
		Open:     b.open,
		Parts:    []testbed.Part{{Name: "TPC-H", Measure: b.table}, {Name: "Parquet: scan of lineitem", Measure: b.scan}},
	}
}

// open fetches the peers and generates the tables.
func (b *bench) open(base *testbed.Bench) error {
	b.Bench = base
	for text := range strings.SplitSeq(b.list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-queries %s: %w", b.list, err)
		}
		b.queries = append(b.queries, n)
	}
	duckdb, err := peers.DuckDB(b.Ctx)
	if err != nil {
		return err
	}
	b.engines = []engine{b.quern(), b.peer(duckdb, fmt.Sprintf("%d threads", b.cores))}
	if b.spark {
		p, err := peers.Spark(b.Ctx)
		if err != nil {
			return err
		}
		b.engines = append(b.engines, b.peer(p, fmt.Sprintf("local[%d] and %d shuffle partitions", b.cores, b.cores)))
	}
	if err := duckdb.Generate(b.Ctx, b.tables(), b.Scale, b.parts); err != nil {
		return err
	}
	return testbed.WarmCache(b.tables())
}

func (b *bench) tables() string { return b.Path(fmt.Sprintf("scale-%s-%d", b.Scale, b.parts)) }
