// Command tpch answers queries of the TPC-H benchmark over the .tbl files of its
// generator, each as a flow of jobs.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	query := flag.Int("query", 0, "`number` of the query: 1, 3, 5, 6, 10 or 13")
	tables := flag.String("tables", "", "`directory`, or URL of one, with lineitem.tbl or lineitem/*.tbl, and so on")
	mapreduce.Main(func() (*mapreduce.Flow, error) {
		make := queries[*query]
		if make == nil {
			return nil, fmt.Errorf("-query %d: want 1, 3, 5, 6, 10 or 13", *query)
		}
		if *tables == "" {
			return nil, errors.New("-tables is not given: want the directory of the .tbl files")
		}
		return make(open(*tables)), nil
	})
}
