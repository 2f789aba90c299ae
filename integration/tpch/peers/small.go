package peers

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// TinyOrders and SmallOrders are the sizes of the databases with recorded answers of DuckDB.
const (
	TinyOrders  = 16
	SmallOrders = 3000
)

// Small returns the tables of a small database by name, always the same for a number of orders.
// Unlike the generator's small scales, it gives every query several lines of answer.
func Small(orders int) map[string]string {
	s := &small{r: rand.New(rand.NewPCG(1, 2)), tables: make(map[string]*strings.Builder)}
	for i, region := range []string{"AFRICA", "ASIA"} {
		s.row("region", i, region, s.words())
	}
	nations := []string{"KENYA", "INDIA", "CHINA", "JAPAN"}
	for i, nation := range nations {
		s.row("nation", i, nation, min(i, 1), s.words())
	}
	suppliers, customers := 8, orders/3+2
	for i := range suppliers {
		s.row("supplier", i+1, fmt.Sprintf("Supplier#%d", i+1), s.words(), i%len(nations), "11-1", s.cents(-999_99, 9999_99), s.words())
	}
	for i := range customers {
		s.row("customer", i+1, fmt.Sprintf("Customer#%d", i+1), s.words(), s.r.IntN(len(nations)), fmt.Sprintf("10-%d", i),
			s.cents(-999_99, 9999_99), s.one("BUILDING", "MACHINERY"), s.words())
	}
	for i := range orders {
		// A quarter of the customers has no orders.
		s.order(4*i+1, 1+s.r.IntN(customers*3/4), suppliers)
	}
	tables := make(map[string]string)
	for name, b := range s.tables {
		tables[name] = b.String()
	}
	return tables
}

type small struct {
	r      *rand.Rand
	tables map[string]*strings.Builder
}

// order adds an order and its lineitems.
func (s *small) order(key, customer, suppliers int) {
	// Most orders are near the days in the queries.
	year := []int{1993, 1994, 1994, 1995}[s.r.IntN(4)]
	day := func(year int) string { return fmt.Sprintf("%d-%02d-%02d", year, 1+s.r.IntN(12), 1+s.r.IntN(28)) }
	if year == 1993 {
		s.row("orders", key, customer, "O", "1.00", fmt.Sprintf("1993-1%d-11", s.r.IntN(3)), "5-LOW", "Clerk#1", 0, s.words())
	} else {
		s.row("orders", key, customer, "O", "1.00", day(year), "1-URGENT", "Clerk#2", s.r.IntN(2), s.words())
	}
	for line := range 1 + s.r.IntN(4) {
		s.row("lineitem", key, 1+s.r.IntN(50), 1+s.r.IntN(suppliers), line+1, fmt.Sprintf("%d.00", 1+s.r.IntN(30)), s.cents(900_00, 99_999_99),
			s.cents(4, 8), s.cents(0, 8), s.one("R", "R", "A", "N"), s.one("O", "F"), day(year+s.r.IntN(2)), day(year), day(year),
			"NONE", "MAIL", s.words())
	}
}

func (s *small) row(table string, fields ...any) {
	b := s.tables[table]
	if b == nil {
		b = new(strings.Builder)
		s.tables[table] = b
	}
	for _, f := range fields {
		fmt.Fprint(b, f, "|")
	}
	b.WriteByte('\n')
}

func (s *small) cents(from, to int) string {
	n := from + s.r.IntN(to-from+1)
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

func (s *small) one(of ...string) string { return of[s.r.IntN(len(of))] }

func (s *small) words() string {
	var words []string
	for range 1 + s.r.IntN(6) {
		words = append(words, s.one("special", "packages", "requests", "deposits", "sleep", "special requests"))
	}
	return strings.Join(words, " ")
}
