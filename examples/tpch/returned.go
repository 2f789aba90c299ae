package main

import (
	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// account has the columns of a customer in query 10.
type account struct {
	Name, Nation, Address, Phone, Comment string
	Balance                               int64 // hundredths
}

func (a *account) Fields(f *mapreduce.Fields) {
	f.String(&a.Name)
	f.String(&a.Nation)
	f.String(&a.Address)
	f.String(&a.Phone)
	f.String(&a.Comment)
	f.Int64(&a.Balance)
}

// returnedItems is query 10: the twenty customers with the most revenue lost to returned items,
// from the orders of a quarter.
func returnedItems(db *database) *mapreduce.Flow {
	type loss = mapreduce.Pair[*table.Row, int64] // a customer's row, with the revenue
	first, after := table.Day("1993-10-01"), table.Day("1994-01-01")

	ofQuarter := db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate).Within(first, after) })
	orders := mapreduce.MapOnly(table.Scan(ofQuarter, func(r *table.Row) (int64, int64) { return r.Int(oOrderkey), r.Int(oCustkey) }))
	losses := table.Group(table.Lookup(byColumn(db.lineitem, lOrderkey), table.Rows(orders), func(r *table.Row, customer int64, emit func(int64, int64)) {
		if r.String(lReturnflag) == "R" {
			emit(customer, revenue(r))
		}
	}), table.Add)

	nation := table.Scan(db.nation, func(r *table.Row) (int64, string) { return r.Int(nNationkey), r.String(nName) })
	customers := table.Lookup(byColumn(db.customer, cCustkey), table.Rows(losses), func(r *table.Row, revenue int64, emit func(int64, loss)) {
		emit(r.Int(cNationkey), mapreduce.PairOf(r, revenue))
	})
	type rank = mapreduce.Pair[mapreduce.Desc[int64], int64]
	ranked := table.Lookup(customers, nation, func(l loss, nation string, emit func(rank, account)) {
		r := l.A
		emit(mapreduce.PairOf(mapreduce.Descending(l.B), r.Int(cCustkey)), account{Name: r.String(cName), Nation: nation,
			Address: r.String(cAddress), Phone: r.String(cPhone), Comment: r.String(cComment), Balance: r.Decimal(cAcctbal)})
	})
	answer := table.Top(20, ranked, func(r rank, a account) string {
		return table.Line(r.B, a.Name, table.Fixed(r.A.V, 4), table.Fixed(a.Balance, 2), a.Nation, a.Address, a.Phone, a.Comment)
	})
	return &mapreduce.Flow{Name: "tpch-10", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("losses", losses), table.Job("answer", answer),
	}}
}
