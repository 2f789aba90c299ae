package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// forecastRevenueChange is query 6: the revenue lost to small discounts in a year.
func forecastRevenueChange(db *database) *mapreduce.Flow {
	first, after := table.Day("1994-01-01"), table.Day("1995-01-01")
	discounted := table.Scan(db.lineitem.Where(func(r *table.Row) bool {
		discount := r.Decimal(lDiscount)
		return r.Date(lShipdate).Within(first, after) && 5 <= discount && discount <= 7 && r.Decimal(lQuantity) < 24_00
	}), func(r *table.Row) (struct{}, int64) {
		return struct{}{}, r.Times(r.Decimal(lExtendedprice), r.Decimal(lDiscount))
	})

	answer := table.Total(discounted, table.Add, func(sum int64, some bool) string {
		if !some {
			return "NULL"
		}
		return table.Fixed(sum, 4)
	})
	return &mapreduce.Flow{Name: "tpch-6", Jobs: []*mapreduce.Job{table.Job("answer", answer)}}
}
