package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// pricing has the sums of query 1 over lineitems.
type pricing struct {
	Quantity, Price, Discount int64 // hundredths
	Discounted                int64 // prices less discounts, ten-thousandths
	Charge                    int64 // discounted prices with tax, millionths
	Lines                     int64
}

func (p *pricing) Fields(f *mapreduce.Fields) {
	f.Int64(&p.Quantity)
	f.Int64(&p.Price)
	f.Int64(&p.Discount)
	f.Int64(&p.Discounted)
	f.Int64(&p.Charge)
	f.Int64(&p.Lines)
}

func pricingOf(r *table.Row) pricing {
	p := pricing{Quantity: r.Decimal(lQuantity), Price: r.Decimal(lExtendedprice), Discount: r.Decimal(lDiscount), Lines: 1}
	p.Discounted = r.Times(p.Price, 100-p.Discount)
	p.Charge = r.Times(p.Discounted, 100+r.Decimal(lTax))
	return p
}

// add fails the task if a sum does not fit an int64: charges do not fit at scale factors above
// about 80.
func (p pricing) add(q pricing) pricing {
	return pricing{table.Add(p.Quantity, q.Quantity), table.Add(p.Price, q.Price), table.Add(p.Discount, q.Discount),
		table.Add(p.Discounted, q.Discounted), table.Add(p.Charge, q.Charge), p.Lines + q.Lines}
}

// columns returns the sums and averages of the answer.
func (p pricing) columns() string {
	average := func(sum int64) string { return table.Fixed(table.Average(sum, p.Lines), 2) }
	return table.Line(table.Fixed(p.Quantity, 2), table.Fixed(p.Price, 2), table.Fixed(p.Discounted, 4), table.Fixed(p.Charge, 6),
		average(p.Quantity), average(p.Price), average(p.Discount), p.Lines)
}

// pricingSummary is query 1: sums of the lineitems shipped until a day, by flag and status.
func pricingSummary(db *database) *mapreduce.Flow {
	type status = mapreduce.Pair[string, string]
	last := table.Day("1998-09-02")

	shipped := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return r.Date(lShipdate) <= last }),
		func(r *table.Row) (status, pricing) {
			return mapreduce.PairOf(r.String(lReturnflag), r.String(lLinestatus)), pricingOf(r)
		})
	summary := table.Group(shipped, pricing.add)
	answer := table.Order(table.Rows(summary), func(s status, p pricing) string { return table.Line(s.A, s.B, p.columns()) })
	return &mapreduce.Flow{Name: "tpch-1", Jobs: []*mapreduce.Job{table.Job("summary", summary), table.Job("answer", answer)}}
}
