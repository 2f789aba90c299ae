package table

import (
	"fmt"
	"math"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

var shop = map[string]string{
	"shop/customer.tbl":      "1|ann|7|\n2|bob|8|\n3|cid|7|\n4|dot|9|\n",
	"shop/sale/sale.1.tbl":   "1|10.00|pen|\n2|2.50|ink|\n1|0.25|ink|\n",
	"shop/sale/sale.2.tbl":   "3|5.00|pen|\n9|1.00|pen|\n1|1.75|pen|\n",
	"shop/city/city.1.tbl":   "7|oslo|\n",
	"shop/city/city.2.tbl":   "8|rome|\n",
	"shop/city/.hidden.tbl":  "not read",
	"shop/unrelated/a.1.tbl": "neither",
}

func customers() *Table { return New(Path("shop", "customer"), "id", "name", "city") }
func sales() *Table     { return New(Path("shop/", "sale"), "customer", "price", "what") }

func cities() *mapreduce.Pairs[int64, string] {
	return Scan(New(Path("shop", "city"), "id", "name"), func(r *Row) (int64, string) { return r.Int(0), r.String(1) })
}

func names() *mapreduce.Pairs[int64, string] {
	return Scan(customers(), func(r *Row) (int64, string) { return r.Int(0), r.String(1) })
}

func prices(of *Table) *mapreduce.Pairs[int64, int64] {
	return Scan(of, func(r *Row) (int64, int64) { return r.Int(0), r.Decimal(1) })
}

func checkRun(t *testing.T, want string, jobs ...*mapreduce.Job) {
	t.Helper()
	if got := mrtest.RunFiles(t, &mapreduce.Flow{Name: "shop", Jobs: jobs}, shop).Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWhere(t *testing.T) {
	pens := sales().Where(func(r *Row) bool { return r.String(2) == "pen" })
	expensive := pens.Where(func(r *Row) bool { return r.Decimal(1) > 1_00 })
	checkRun(t, "1\t1175\n3\t500\n", Job("j", Group(prices(expensive), mapreduce.Sum)))
	checkRun(t, "1\t1175\n3\t500\n9\t100\n", Job("j", Group(prices(pens), mapreduce.Sum)))
}

// TestLookup: lookups nest on both sides, and a row is its own value.
func TestLookup(t *testing.T) {
	byCity := Scan(customers(), func(r *Row) (int64, *Row) { return r.Int(2), r })
	inOslo := Lookup(byCity, cities(), func(r *Row, city string, emit func(int64, string)) {
		if city == "oslo" {
			emit(r.Int(0), r.String(1))
		}
	})
	byCustomer := Scan(sales(), func(r *Row) (int64, *Row) { return r.Int(0), r })
	sold := Lookup(byCustomer, inOslo, func(_ *Row, name string, emit func(string, int64)) { emit(name, 1) })
	checkRun(t, "ann\t3\ncid\t1\n", Job("j", Group(sold, mapreduce.Sum)))
}

// TestLookupOfResult: the small side is the result of another job.
func TestLookupOfResult(t *testing.T) {
	totals := Group(prices(sales()), mapreduce.Sum)
	byID := Scan(customers(), func(r *Row) (int64, *Row) { return r.Int(0), r })
	joined := mapreduce.MapOnly(Lookup(byID, Rows(totals), func(r *Row, total int64, emit func(string, int64)) { emit(r.String(1), total) }))
	checkRun(t, "ann\t1200\nbob\t250\ncid\t500\n", Job("joined", joined), Job("totals", totals))
}

// TestAdd: a sum is exact, or Add panics.
func TestAdd(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		fits bool
	}{
		{1, -3, true}, {math.MaxInt64, 0, true}, {math.MinInt64, 0, true}, {math.MaxInt64 - 1, 1, true}, {math.MinInt64, math.MaxInt64, true},
		{math.MaxInt64, 1, false}, {1, math.MaxInt64, false}, {math.MinInt64, -1, false}, {math.MinInt64, math.MinInt64, false},
	} {
		func() {
			defer func() {
				if fits := recover() == nil; fits != c.fits {
					t.Errorf("%d and %d: %t, want %t", c.a, c.b, fits, c.fits)
				}
			}()
			if sum := Add(c.a, c.b); sum != c.a+c.b {
				t.Errorf("%d and %d are %d", c.a, c.b, sum)
			}
		}()
	}
}

func TestLeftJoinGroup(t *testing.T) {
	joined := LeftJoinGroup(names(), prices(sales()), mapreduce.Sum, func(_ int64, name string, price int64) (string, int64) { return name, price })
	checkRun(t, "ann\t1200\nbob\t250\ncid\t500\ndot\t0\n", Job("joined", joined))
}

type byPrice = mapreduce.Pair[mapreduce.Desc[int64], string]

// spent has the customers in the order of what they have paid.
func spent() (total *mapreduce.Result[string, int64], ranked *mapreduce.Pairs[byPrice, struct{}]) {
	total = LeftJoinGroup(names(), prices(sales()), mapreduce.Sum, func(_ int64, name string, price int64) (string, int64) { return name, price })
	return total, Project(total, func(name string, price int64) (byPrice, struct{}) {
		return mapreduce.PairOf(mapreduce.Descending(price), name), struct{}{}
	})
}

func priceLine(p byPrice, _ struct{}) string { return Line(p.B, Fixed(p.A.V, 2)) }

// TestOrder: the part files, in order, are sorted.
func TestOrder(t *testing.T) {
	for _, reduces := range []int{0, 3} {
		total, ranked := spent()
		answer := Job("answer", Order(ranked, priceLine))
		answer.Reduces = reduces
		checkRun(t, "ann|12.00\ncid|5.00\nbob|2.50\ndot|0.00\n", Job("total", total), answer)
	}
}

func TestTop(t *testing.T) {
	for n, want := range []string{"", "ann|12.00\n", "ann|12.00\ncid|5.00\n"} {
		total, ranked := spent()
		checkRun(t, want, Job("total", total), Job("answer", Top(n, ranked, priceLine)))
	}
}

func TestTotal(t *testing.T) {
	for minimum, want := range map[int64]string{0: "20.50 true\n", 100_00: "0.00 false\n"} {
		some := sales().Where(func(r *Row) bool { return r.Decimal(1) >= minimum })
		all := Scan(some, func(r *Row) (struct{}, int64) { return struct{}{}, r.Decimal(1) })
		checkRun(t, want, Job("j", Total(all, mapreduce.Sum, func(sum int64, some bool) string { return fmt.Sprint(Fixed(sum, 2), " ", some) })))
	}
}

func TestPath(t *testing.T) {
	for dir, want := range map[string]string{"a/b": "a/b/t{.tbl|/*.tbl}", "a/": "a/t{.tbl|/*.tbl}", "/": "/t{.tbl|/*.tbl}",
		"hdfs://nn/x[1]": `hdfs://nn/x\[1\]/t{.tbl|/*.tbl}`} {
		if got := Path(dir, "t"); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
