// Command tpch answers queries of the TPC-H benchmark from the .tbl files of its
// generator. Each query is a flow of jobs.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

// queries has the flows by TPC-H's number, with the parameters of its validation run.
var queries = map[int]func(*database) *mapreduce.Flow{
	1:  pricingSummary,
	3:  shippingPriority,
	5:  localSupplierVolume,
	6:  forecastRevenueChange,
	10: returnedItems,
	13: customerDistribution,
}

func main() {
	query := flag.Int("query", 0, "`number` of the query: 1, 3, 5, 6, 10 or 13")
	tables := flag.String("tables", "", "`directory` or URL with the tables: lineitem.tbl or lineitem/*.tbl, and so on")
	mapreduce.Main(func() (*mapreduce.Flow, error) { return flowOf(*query, *tables) })
}

func flowOf(query int, tables string) (*mapreduce.Flow, error) {
	flow := queries[query]
	if flow == nil {
		return nil, fmt.Errorf("-query must be 1, 3, 5, 6, 10 or 13, got %d", query)
	}
	if tables == "" {
		return nil, errors.New("-tables is missing: give the directory of the .tbl files")
	}
	return flow(open(tables)), nil
}
