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
	type loss = mapreduce.Pair[account, int64]
	first, after := table.Day("1993-10-01"), table.Day("1994-01-01")

	nation := table.NewSide("nation", db.nation, func(r *table.Row) (int64, string) { return r.Int(nNationkey), r.String(nName) })
	quarter := table.Scan(db.orders.Where(func(r *table.Row) bool { return r.Date(oOrderdate).Within(first, after) }),
		func(r *table.Row) (int64, int64) { return r.Int(oOrderkey), r.Int(oCustkey) })
	returned := table.Scan(db.lineitem.Where(func(r *table.Row) bool { return r.String(lReturnflag) == "R" }),
		func(r *table.Row) (int64, int64) { return r.Int(lOrderkey), revenue(r) })
	orders := table.JoinGroup(quarter, returned, table.Add,
		func(_ int64, customer, revenue int64) (int64, int64) { return customer, revenue })

	accounts := table.Scan(db.customer.Where(func(r *table.Row) bool { return nation.Has(r, r.Int(cNationkey)) }),
		func(r *table.Row) (int64, account) {
			return r.Int(cCustkey), account{Name: r.String(cName), Nation: nation.Of(r, r.Int(cNationkey)), Address: r.String(cAddress),
				Phone: r.String(cPhone), Comment: r.String(cComment), Balance: r.Decimal(cAcctbal)}
		})
	losses := table.JoinGroup(accounts, table.Rows(orders), table.Add,
		func(customer int64, a account, revenue int64) (int64, loss) {
			return customer, mapreduce.PairOf(a, revenue)
		})

	answer := table.Top(20, losses, func(customer int64, l loss) (mapreduce.Pair[mapreduce.Desc[int64], int64], string) {
		a, revenue := l.A, l.B
		return mapreduce.PairOf(mapreduce.Descending(revenue), customer), table.Line(customer, a.Name, table.Fixed(revenue, 4),
			table.Fixed(a.Balance, 2), a.Nation, a.Address, a.Phone, a.Comment)
	})
	return &mapreduce.Flow{Name: "tpch-10", Jobs: []*mapreduce.Job{
		table.Job("orders", orders), table.Job("losses", losses, nation), table.Job("answer", answer),
	}}
}
