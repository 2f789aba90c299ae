// Command revenue adds up what discounts cost, from Parquet files of TPC-H's table lineitem. It reads two columns, and
// with -before a third one for a filter.
package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/quernmr/quern/formats/parquet"
	"github.com/quernmr/quern/mapreduce"
)

func main() {
	text := flag.Bool("text", false, "write text instead of Parquet")
	before := flag.String("before", "", "only what was shipped before this `date`, such as 1995-01-01")
	mapreduce.Main(func() (*mapreduce.Job, error) { return revenue(*before, *text) })
}

// item has the columns that the job needs, in hundredths.
type item struct {
	Price    int64 `parquet:"l_extendedprice,decimal(2:15)"`
	Discount int64 `parquet:"l_discount,decimal(2:15)"`
}

// total is a row of the output.
type total struct {
	Name    string `parquet:"name"`
	Revenue int64  `parquet:"revenue,decimal(4:18)"`
}

func revenue(before string, text bool) (*mapreduce.Job, error) {
	items := parquet.Input[item]()
	if before != "" {
		day, err := time.Parse(time.DateOnly, before)
		if err != nil {
			return nil, fmt.Errorf("-before: %w", err)
		}
		items = parquet.Select[item](parquet.Where("l_shipdate", parquet.Less, parquet.DateOf(day.Date())))
	}
	costs := mapreduce.Map(items, func(_ *mapreduce.Task, i item, emit func(string, int64)) error {
		emit("discounts", i.Price*i.Discount)
		return nil
	})
	job := mapreduce.Fold(costs, mapreduce.Sum).Job("revenue")
	if !text {
		job.Format = parquet.Output(func(name string, revenue int64) total { return total{name, revenue} })
	}
	return job, nil
}
