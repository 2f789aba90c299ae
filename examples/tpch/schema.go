package main

import (
	"strings"

	"github.com/quernmr/quern/examples/tpch/table"
	"github.com/quernmr/quern/mapreduce"
)

// database has the tables that the queries read.
type database struct {
	customer, lineitem, nation, orders, region, supplier *table.Table
}

func open(dir string) *database {
	named := func(name, columns string) *table.Table {
		return table.New(table.Path(dir, name), strings.Fields(columns)...)
	}
	return &database{
		customer: named("customer", "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment"),
		lineitem: named("lineitem", "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax "+
			"l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment"),
		nation: named("nation", "n_nationkey n_name n_regionkey n_comment"),
		orders: named("orders", "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk "+
			"o_shippriority o_comment"),
		region:   named("region", "r_regionkey r_name r_comment"),
		supplier: named("supplier", "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment"),
	}
}

// The columns that queries read, by number.
const (
	cCustkey, cName, cAddress, cNationkey, cPhone, cAcctbal, cMktsegment, cComment = 0, 1, 2, 3, 4, 5, 6, 7

	lOrderkey, lSuppkey, lQuantity, lExtendedprice, lDiscount, lTax = 0, 2, 4, 5, 6, 7
	lReturnflag, lLinestatus, lShipdate                             = 8, 9, 10

	nNationkey, nName, nRegionkey = 0, 1, 2

	oOrderkey, oCustkey, oOrderdate, oShippriority, oComment = 0, 1, 4, 7, 8

	rRegionkey, rName = 0, 1

	sSuppkey, sNationkey = 0, 3
)

// byColumn reads a table for table.Lookup, with a number as the key.
func byColumn(t *table.Table, column int) *mapreduce.Pairs[int64, *table.Row] {
	return table.Scan(t, func(r *table.Row) (int64, *table.Row) { return r.Int(column), r })
}

// revenue returns the discounted price of a lineitem, in ten-thousandths.
func revenue(r *table.Row) int64 {
	return r.Times(r.Decimal(lExtendedprice), 100-r.Decimal(lDiscount))
}
