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

func cities() *Side[int64, string] {
	return NewSide("city", New(Path("shop", "city"), "id", "name"), func(r *Row) (int64, string) { return r.Int(0), r.String(1) })
}

func names() *mapreduce.Pairs[int64, string] {
	return Scan(customers(), func(r *Row) (int64, string) { return r.Int(0), r.String(1) })
}

func prices(of *Table) *mapreduce.Pairs[int64, int64] {
	return Scan(of, func(r *Row) (int64, int64) { return r.Int(0), r.Decimal(1) })
}

func named(id int64, name string, price int64) (string, int64) { return name, price }

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

func TestSide(t *testing.T) {
	city := cities()
	inOslo := NewSide("in-oslo", New(Path("shop", "customer"), "id", "name", "city").Where(func(r *Row) bool { return city.Of(r, r.Int(2)) == "oslo" }),
		func(r *Row) (int64, string) { return r.Int(0), r.String(1) })
	checkRun(t, "ann\t3\ncid\t1\n", Job("j", Group(Scan(sales().Where(func(r *Row) bool { return inOslo.Has(r, r.Int(0)) }),
		func(r *Row) (string, int64) { return inOslo.Of(r, r.Int(0)), 1 }), mapreduce.Sum), city, inOslo))
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

func TestJoins(t *testing.T) {
	joined := Join(names(), prices(sales()), named)
	checkRun(t, "ann|0.25\nann|1.75\nann|10.00\nbob|2.50\ncid|5.00\n", Job("joined", joined),
		Job("answer", Order(joined, func(name string, price int64) (string, string) { return name, Line(name, Fixed(price, 2)) })))
	checkRun(t, "ann\t1200\nbob\t250\ncid\t500\n", Job("joined", JoinGroup(names(), prices(sales()), mapreduce.Sum, named)))
	checkRun(t, "ann\t1200\nbob\t250\ncid\t500\ndot\t0\n", Job("joined", LeftJoinGroup(names(), prices(sales()), mapreduce.Sum, named)))
}

func byPrice(name string, price int64) (mapreduce.Desc[int64], string) {
	return mapreduce.Descending(price / 1000), Line(name, Fixed(price, 2))
}

// TestOrder: rows with equal keys are sorted as text, and the part files, in order, are sorted.
func TestOrder(t *testing.T) {
	total := LeftJoinGroup(names(), prices(sales()), mapreduce.Sum, named)
	ordered := func() *mapreduce.Job { return Job("answer", Order(total, byPrice)) }
	checkRun(t, "ann|12.00\nbob|2.50\ncid|5.00\ndot|0.00\n", Job("total", total), ordered())
	in3 := ordered()
	in3.Reduces = 3
	checkRun(t, "ann|12.00\nbob|2.50\ncid|5.00\ndot|0.00\n", Job("total", total), in3)
}

func TestTop(t *testing.T) {
	total := LeftJoinGroup(names(), prices(sales()), mapreduce.Sum, named)
	for n, want := range []string{"", "ann|12.00\n", "ann|12.00\nbob|2.50\n"} {
		checkRun(t, want, Job("total", total), Job("answer", Top(n, total, byPrice)))
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
