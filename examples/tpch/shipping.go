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
	before := table.Scan(db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate) < day }),
		func(r *table.Row) (int64, order) {
			return r.Int(oCustkey), order{Day: r.Date(oOrderdate), Key: r.Int(oOrderkey), Priority: r.Int(oShippriority)}
		})
	orders := table.Join(builders, before, func(_ int64, _ struct{}, o order) (int64, order) { return o.Key, o })

	later := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return r.Date(lShipdate) > day }),
		func(r *table.Row) (int64, int64) { return r.Int(lOrderkey), revenue(r) })
	unshipped := table.JoinGroup(table.Rows(orders), later, table.Add,
		func(_ int64, o order, revenue int64) (order, int64) { return o, revenue })

	answer := table.Top(10, unshipped, func(o order, revenue int64) (mapreduce.Pair[mapreduce.Desc[int64], order], string) {
		return mapreduce.PairOf(mapreduce.Descending(revenue), o), table.Line(o.Key, table.Fixed(revenue, 4), o.Day, o.Priority)
	})
	return &mapreduce.Flow{Name: "tpch-3", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("unshipped", unshipped), table.Job("answer", answer),
	}}
}
