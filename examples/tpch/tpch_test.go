package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quernmr/quern/integration/tpch/peers"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

var rewrite = flag.Bool("rewrite", false, "ask DuckDB for the answers in testdata")

// TestQueries: the answers are DuckDB's, however the tables are split and the work
// is spread.
func TestQueries(t *testing.T) {
	small := peers.Small(16)
	if *rewrite {
		ask(t, small)
	}
	tables := make(map[string]string)
	for name, rows := range small {
		tables["db/"+name+".tbl"] = rows
	}
	if slices.Compare(peers.Queries(), numbers()) != 0 {
		t.Errorf("there is SQL for %v, and flows for %v", peers.Queries(), numbers())
	}
	for number := range queries {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			want, err := os.ReadFile(answerFile(number))
			if err != nil {
				t.Fatal(err)
			}
			program := mrtest.Program(func() (*mapreduce.Flow, error) { return flowOf(number, "db") })
			got := mrtest.RunFiles(t, program, tables).Text()
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// TestPricingFits: no sum of query 1 wraps.
func TestPricingFits(t *testing.T) {
	one := pricing{1, 1, 1, 1, 1, 1}
	for _, full := range []pricing{
		{Quantity: math.MaxInt64}, {Price: math.MaxInt64}, {Discount: math.MaxInt64}, {Discounted: math.MaxInt64}, {Charge: math.MaxInt64},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v and one more do not fail", full)
				}
			}()
			full.add(one)
		}()
	}
	most := pricing{Charge: math.MaxInt64 - 1}
	if sum := most.add(one); sum.Charge != math.MaxInt64 {
		t.Errorf("%+v", sum)
	}
}

func numbers() (all []int) {
	for number := range queries {
		all = append(all, number)
	}
	slices.Sort(all)
	return all
}

func answerFile(query int) string { return filepath.Join("testdata", fmt.Sprintf("%d.txt", query)) }

func ask(t *testing.T, small map[string]string) {
	duckdb, err := peers.DuckDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, rows := range small {
		if err := os.WriteFile(filepath.Join(dir, name+".tbl"), []byte(rows), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for number := range queries {
		answer, err := duckdb.Ask(t.Context(), dir, number, 1)
		if err == nil {
			err = errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(answerFile(number), []byte(answer.Lines), 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
