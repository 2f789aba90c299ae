package main

import (
	"strings"

	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// queries by TPC-H's number. Their parameters are those of its validation run.
var queries = map[int]func(*database) *mapreduce.Flow{
	1:  pricingSummary,
	3:  shippingPriority,
	5:  localSupplierVolume,
	6:  forecastRevenueChange,
	10: returnedItems,
	13: customerDistribution,
}

// shippingPriority is query 3: the ten orders of a market segment, not shipped by
// a day, that would bring most.
func shippingPriority(db *database) *mapreduce.Flow {
	type terms = mapreduce.Pair[table.Date, int64] // of an order: its date and priority
	day := table.Day("1995-03-15")

	builders := table.Scan(db.customer.Where(func(r *table.Row) bool { return r.String(cMktsegment) == "BUILDING" }),
		func(r *table.Row) (int64, struct{}) { return r.Int(cCustkey), struct{}{} })
	before := table.Scan(db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate) < day }),
		func(r *table.Row) (int64, mapreduce.Pair[int64, terms]) {
			return r.Int(oCustkey), mapreduce.PairOf(r.Int(oOrderkey), mapreduce.PairOf(r.Date(oOrderdate), r.Int(oShippriority)))
		})
	orders := table.Join(builders, before, func(_ int64, _ struct{}, o mapreduce.Pair[int64, terms]) (int64, terms) { return o.A, o.B })

	later := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return r.Date(lShipdate) > day }),
		func(r *table.Row) (int64, int64) { return r.Int(lOrderkey), revenue(r) })
	unshipped := table.JoinGroup(table.Rows(orders), later, mapreduce.Sum,
		func(order int64, t terms, revenue int64) (int64, mapreduce.Pair[terms, int64]) {
			return order, mapreduce.PairOf(t, revenue)
		})

	answer := table.Top(10, unshipped, func(order int64, row mapreduce.Pair[terms, int64]) (mapreduce.Pair[mapreduce.Desc[int64], mapreduce.Pair[table.Date, int64]], string) {
		t, revenue := row.A, row.B
		return mapreduce.PairOf(mapreduce.Descending(revenue), mapreduce.PairOf(t.A, order)), table.Line(order, table.Fixed(revenue, 4), t.A, t.B)
	})
	return &mapreduce.Flow{Name: "tpch-3", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("unshipped", unshipped), table.Job("answer", answer),
	}}
}

// localSupplierVolume is query 5: what the suppliers of a region's nations sold in
// a year to customers of their own nation.
func localSupplierVolume(db *database) *mapreduce.Flow {
	type orderIn = mapreduce.Pair[int64, string] // an order, or line of one, with a nation
	first, after := table.Day("1994-01-01"), table.Day("1995-01-01")

	region := table.NewSide("region", db.region.Where(func(r *table.Row) bool { return r.String(rName) == "ASIA" }),
		func(r *table.Row) (int64, struct{}) { return r.Int(rRegionkey), struct{}{} })
	nation := table.NewSide("nation", db.nation.Where(func(r *table.Row) bool { return region.Has(r, r.Int(nRegionkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(nNationkey), r.String(nName) })
	supplier := table.NewSide("supplier", db.supplier.Where(func(r *table.Row) bool { return nation.Has(r, r.Int(sNationkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(sSuppkey), nation.Of(r, r.Int(sNationkey)) })

	customers := table.Scan(db.customer.Where(func(r *table.Row) bool { return nation.Has(r, r.Int(cNationkey)) }),
		func(r *table.Row) (int64, string) { return r.Int(cCustkey), nation.Of(r, r.Int(cNationkey)) })
	ofYear := table.Scan(db.orders.Where(func(r *table.Row) bool { d := r.Date(oOrderdate); return first <= d && d < after }),
		func(r *table.Row) (int64, int64) { return r.Int(oCustkey), r.Int(oOrderkey) })
	orders := table.Join(customers, ofYear, func(_ int64, nation string, order int64) (orderIn, struct{}) {
		return mapreduce.PairOf(order, nation), struct{}{}
	})

	lines := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return supplier.Has(r, r.Int(lSuppkey)) }),
		func(r *table.Row) (orderIn, int64) {
			return mapreduce.PairOf(r.Int(lOrderkey), supplier.Of(r, r.Int(lSuppkey))), revenue(r)
		})
	sold := table.JoinGroup(table.Rows(orders), lines, mapreduce.Sum,
		func(o orderIn, _ struct{}, revenue int64) (string, int64) { return o.B, revenue })

	volume := table.Group(table.Rows(sold), mapreduce.Sum)
	answer := table.Order(volume, func(nation string, revenue int64) (mapreduce.Desc[int64], string) {
		return mapreduce.Descending(revenue), table.Line(nation, table.Fixed(revenue, 4))
	})
	return &mapreduce.Flow{Name: "tpch-5", Jobs: []*mapreduce.Job{
		table.Job("orders", orders, region, nation), table.Job("sold", sold, region, nation, supplier),
		table.Job("volume", volume), table.Job("answer", answer),
	}}
}

// forecastRevenueChange is query 6: what small discounts of a year took away.
func forecastRevenueChange(db *database) *mapreduce.Flow {
	first, after := table.Day("1994-01-01"), table.Day("1995-01-01")
	discounted := table.Scan(db.lineitem.Where(func(r *table.Row) bool {
		day, discount := r.Date(lShipdate), r.Decimal(lDiscount)
		return first <= day && day < after && 5 <= discount && discount <= 7 && r.Decimal(lQuantity) < 24_00
	}), func(r *table.Row) (struct{}, int64) {
		return struct{}{}, r.Decimal(lExtendedprice) * r.Decimal(lDiscount)
	})

	answer := table.Total(discounted, mapreduce.Sum, func(sum int64, some bool) string {
		if !some {
			return "NULL"
		}
		return table.Fixed(sum, 4)
	})
	return &mapreduce.Flow{Name: "tpch-6", Jobs: []*mapreduce.Job{table.Job("answer", answer)}}
}

// customerDistribution is query 13: how many customers have how many orders, but
// for those with special requests.
func customerDistribution(db *database) *mapreduce.Flow {
	customers := table.Scan(db.customer, func(r *table.Row) (int64, struct{}) { return r.Int(cCustkey), struct{}{} })
	usual := table.Scan(db.orders.Where(func(r *table.Row) bool {
		_, after, special := strings.Cut(r.String(oComment), "special")
		return !special || !strings.Contains(after, "requests")
	}), func(r *table.Row) (int64, int64) { return r.Int(oCustkey), 1 })
	counts := table.LeftJoinGroup(customers, usual, mapreduce.Sum,
		func(_ int64, _ struct{}, orders int64) (int64, int64) { return orders, 1 })

	distribution := table.Group(table.Rows(counts), mapreduce.Sum)
	answer := table.Order(distribution, func(orders, customers int64) (mapreduce.Pair[mapreduce.Desc[int64], mapreduce.Desc[int64]], string) {
		return mapreduce.PairOf(mapreduce.Descending(customers), mapreduce.Descending(orders)), table.Line(orders, customers)
	})
	return &mapreduce.Flow{Name: "tpch-13", Jobs: []*mapreduce.Job{
		table.Job("counts", counts), table.Job("distribution", distribution), table.Job("answer", answer),
	}}
}
