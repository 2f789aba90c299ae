package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// order has the columns of an order in query 3. The day comes first because it sorts orders with
// equal revenue.
type order struct {
	Day           table.Date
	Key, Priority int64
}

func (o *order) Fields(f *mapreduce.Fields) {
	f.Int32((*int32)(&o.Day))
	f.Int64(&o.Key)
	f.Int64(&o.Priority)
}

// shippingPriority is query 3: the ten orders of a market segment with the most unshipped
// revenue on a day.
func shippingPriority(db *database) *mapreduce.Flow {
	day := table.Day("1995-03-15")

	builders := table.Scan(db.customer.Where(func(r *table.Row) bool { return r.String(cMktsegment) == "BUILDING" }),
		func(r *table.Row) (int64, struct{}) { return r.Int(cCustkey), struct{}{} })
	before := db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate) < day })
	orders := mapreduce.MapOnly(table.Lookup(byColumn(before, oCustkey), builders, func(r *table.Row, _ struct{}, emit func(int64, order)) {
		o := order{Day: r.Date(oOrderdate), Key: r.Int(oOrderkey), Priority: r.Int(oShippriority)}
		emit(o.Key, o)
	}))

	unshipped := table.Group(table.Lookup(byColumn(db.lineitem, lOrderkey), table.Rows(orders), func(r *table.Row, o order, emit func(order, int64)) {
		if r.Date(lShipdate) > day {
			emit(o, revenue(r))
		}
	}), table.Add)

	type rank = mapreduce.Pair[mapreduce.Desc[int64], order]
	ranked := table.Project(unshipped, func(o order, revenue int64) (rank, struct{}) {
		return mapreduce.PairOf(mapreduce.Descending(revenue), o), struct{}{}
	})
	answer := table.Top(10, ranked, func(r rank, _ struct{}) string {
		return table.Line(r.B.Key, table.Fixed(r.A.V, 4), r.B.Day, r.B.Priority)
	})
	return &mapreduce.Flow{Name: "tpch-3", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("unshipped", unshipped), table.Job("answer", answer),
	}}
}
