// Command leftjoin adds the names of customers to their orders. Both are CSV files, as the output is. An order of an
// unknown customer has no name.
package main

import (
	"flag"

	"github.com/quernmr/quern/mapreduce"
)

type order struct {
	ID       int64  `csv:"order"`
	Customer int64  `csv:"customer"`
	Amount   string `csv:"amount"`
}

type customer struct {
	ID   int64  `csv:"id"`
	Name string `csv:"name"`
}

type row struct {
	order
	Name *string `csv:"name"`
}

func main() {
	orders, customers := flag.String("orders", "", "CSV `file` of orders"), flag.String("customers", "", "CSV `file` of customers")
	mapreduce.Main(func() (*mapreduce.Job, error) { return leftJoin(*orders, *customers), nil })
}

func leftJoin(orders, customers string) *mapreduce.Job {
	left := mapreduce.Map(mapreduce.CSV[order](mapreduce.CSVFormat{}, orders), func(_ *mapreduce.Task, o order, emit func(int64, order)) error {
		emit(o.Customer, o)
		return nil
	})
	right := mapreduce.Map(mapreduce.CSV[customer](mapreduce.CSVFormat{}, customers), func(_ *mapreduce.Task, c customer, emit func(int64, string)) error {
		emit(c.ID, c.Name)
		return nil
	})
	job := mapreduce.JoinEach(left, right, mapreduce.LeftJoin, func(_ *mapreduce.Task, _ int64, o *order, name *string, emit func(row, struct{})) error {
		emit(row{*o, name}, struct{}{})
		return nil
	}).Job("left join")
	job.Format = mapreduce.CSVOutput(mapreduce.CSVFormat{}, func(r row, _ struct{}) row { return r })
	return job
}
