package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// localSupplierVolume is query 5: the revenue of a year from suppliers and customers of the same
// nation, for each nation of a region.
func localSupplierVolume(db *database) *mapreduce.Flow {
	type supply = mapreduce.Pair[int64, string] // a supplier, with a nation
	first, after := table.Day("1994-01-01"), table.Day("1995-01-01")

	region := table.Scan(db.region.Where(func(r *table.Row) bool { return r.String(rName) == "ASIA" }),
		func(r *table.Row) (int64, struct{}) { return r.Int(rRegionkey), struct{}{} })
	nation := table.Lookup(byColumn(db.nation, nRegionkey), region, func(r *table.Row, _ struct{}, emit func(int64, string)) {
		emit(r.Int(nNationkey), r.String(nName))
	})
	suppliers := table.Lookup(byColumn(db.supplier, sNationkey), nation, func(r *table.Row, nation string, emit func(supply, string)) {
		emit(mapreduce.PairOf(r.Int(sSuppkey), nation), nation)
	})
	customers := table.Lookup(byColumn(db.customer, cNationkey), nation, func(r *table.Row, nation string, emit func(int64, string)) {
		emit(r.Int(cCustkey), nation)
	})

	ofYear := db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate).Within(first, after) })
	orders := mapreduce.MapOnly(table.Lookup(byColumn(ofYear, oCustkey), customers, func(r *table.Row, nation string, emit func(int64, string)) {
		emit(r.Int(oOrderkey), nation)
	}))
	lines := table.Lookup(byColumn(db.lineitem, lOrderkey), table.Rows(orders), func(r *table.Row, nation string, emit func(supply, *table.Row)) {
		emit(mapreduce.PairOf(r.Int(lSuppkey), nation), r)
	})
	volume := table.Group(table.Lookup(lines, suppliers, func(r *table.Row, nation string, emit func(string, int64)) {
		emit(nation, revenue(r))
	}), table.Add)

	type rank = mapreduce.Pair[mapreduce.Desc[int64], string]
	ranked := table.Project(volume, func(nation string, revenue int64) (rank, struct{}) {
		return mapreduce.PairOf(mapreduce.Descending(revenue), nation), struct{}{}
	})
	answer := table.Order(ranked, func(r rank, _ struct{}) string { return table.Line(r.B, table.Fixed(r.A.V, 4)) })
	return &mapreduce.Flow{Name: "tpch-5", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("volume", volume), table.Job("answer", answer),
	}}
}
