package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quernmr/quern/integration/tpch/peers"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestQueries: the answers are DuckDB's, which `make compat` records, for any splits and
// any number of reduces.
func TestQueries(t *testing.T) {
	tables := make(map[string]string)
	for name, rows := range peers.Small(peers.TinyOrders) {
		tables["db/"+name+".tbl"] = rows
	}
	if slices.Compare(peers.Queries(), numbers()) != 0 {
		t.Errorf("SQL exists for queries %v, flows for %v", peers.Queries(), numbers())
	}
	for number := range queries {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			want, err := os.ReadFile(fmt.Sprintf("testdata/%d.txt", number))
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

// TestPricingFits: if a sum of query 1 does not fit, add panics.
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
	largest := pricing{Charge: math.MaxInt64 - 1}
	if sum := largest.add(one); sum.Charge != math.MaxInt64 {
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
