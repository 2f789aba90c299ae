package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// localSupplierVolume is query 5: the revenue of a year from suppliers and customers of the same
// nation, for each nation of a region.
func localSupplierVolume(db *database) *mapreduce.Flow {
	type orderIn = mapreduce.Pair[int64, string] // an order or lineitem, with a nation
	first, after := table.Day("1994-01-01"), table.Day("1995-01-01")

	region := table.NewSide("region", db.region.Where(func(r *table.Row) bool { return r.String(rName) == "ASIA" }),
		func(r *table.Row) (int64, struct{}) { return r.Int(rRegionkey), struct{}{} })
	nation := table.NewSide("nation", db.nation.Where(func(r *table.Row) bool { return region.Has(r, r.Int(nRegionkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(nNationkey), r.String(nName) })
	supplier := table.NewSide("supplier", db.supplier.Where(func(r *table.Row) bool { return nation.Has(r, r.Int(sNationkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(sSuppkey), nation.Of(r, r.Int(sNationkey)) })

	customers := table.Scan(db.customer.Where(func(r *table.Row) bool { return nation.Has(r, r.Int(cNationkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(cCustkey), nation.Of(r, r.Int(cNationkey)) })
	ofYear := table.Scan(db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate).Within(first, after) }),
		func(r *table.Row) (int64, int64) { return r.Int(oCustkey), r.Int(oOrderkey) })
	orders := table.Join(customers, ofYear, func(_ int64, nation string, order int64) (orderIn, struct{}) {
		return mapreduce.PairOf(order, nation), struct{}{}
	})

	lines := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return supplier.Has(r, r.Int(lSuppkey)) }),
		func(r *table.Row) (orderIn, int64) {
			return mapreduce.PairOf(r.Int(lOrderkey), supplier.Of(r, r.Int(lSuppkey))), revenue(r)
		})
	sold := table.JoinGroup(table.Rows(orders), lines, table.Add,
		func(o orderIn, _ struct{}, revenue int64) (string, int64) { return o.B, revenue })

	volume := table.Group(table.Rows(sold), table.Add)
	answer := table.Order(volume, func(nation string, revenue int64) (mapreduce.Desc[int64], string) {
		return mapreduce.Descending(revenue), table.Line(nation, table.Fixed(revenue, 4))
	})
	return &mapreduce.Flow{Name: "tpch-5", Jobs: []*mapreduce.Job{
		table.Job("orders", orders, region, nation), table.Job("sold", sold, region, nation, supplier),
		table.Job("volume", volume), table.Job("answer", answer),
	}}
}
