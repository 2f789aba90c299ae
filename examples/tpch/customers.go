package main

import (
	"strings"

	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// customerDistribution is query 13: the number of customers for each number of orders. It does
// not count orders with special requests.
func customerDistribution(db *database) *mapreduce.Flow {
	customers := table.Scan(db.customer, func(r *table.Row) (int64, struct{}) { return r.Int(cCustkey), struct{}{} })
	usual := table.Scan(db.orders.Where(func(r *table.Row) bool {
		_, after, special := strings.Cut(r.String(oComment), "special")
		return !special || !strings.Contains(after, "requests")
	}), func(r *table.Row) (int64, int64) { return r.Int(oCustkey), 1 })
	counts := table.LeftJoinGroup(customers, usual, mapreduce.Sum,
		func(_ int64, _ struct{}, orders int64) (int64, int64) { return orders, 1 })

	distribution := table.Group(table.Rows(counts), mapreduce.Sum)
	type rank = mapreduce.Pair[mapreduce.Desc[int64], mapreduce.Desc[int64]]
	ranked := table.Project(distribution, func(orders, customers int64) (rank, struct{}) {
		return mapreduce.PairOf(mapreduce.Descending(customers), mapreduce.Descending(orders)), struct{}{}
	})
	answer := table.Order(ranked, func(r rank, _ struct{}) string { return table.Line(r.B.V, r.A.V) })
	return &mapreduce.Flow{Name: "tpch-13", Jobs: []*mapreduce.Job{
		table.Job("counts", counts), table.Job("distribution", distribution), table.Job("answer", answer),
	}}
}
