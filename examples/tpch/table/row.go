package table

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

// Row is one line of a table. Its methods take the number of a column, from 0. If a
// method cannot parse its field, it returns zero, and the row's error fails the map.
type Row struct {
	table *Table
	task  *mapreduce.Task
	line  string
	ends  [maxColumns]int // of fields, in line
	err   error
}

// read splits a line into its fields.
func (r *Row) read(line string) {
	r.line, r.err = line, nil
	columns, at := len(r.table.columns), 0
	for i := range columns {
		n := strings.IndexByte(line[at:], '|')
		if n < 0 {
			r.fail("a line has %d fields that end with '|', want %d", i, columns)
			return
		}
		r.ends[i] = at + n
		at += n + 1
	}
	if at < len(line) {
		r.fail("a line has more than %d fields: %.50q follows", columns, line[at:])
	}
}

func (r *Row) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *Row) wrong(column int, want string) int64 {
	r.fail("field %d, %s: %.50q is not %s", column+1, r.table.columns[column], r.String(column), want)
	return 0
}

// String returns a field unchanged.
func (r *Row) String(column int) string {
	if column == 0 {
		return r.line[:r.ends[0]]
	}
	return r.line[r.ends[column-1]+1 : r.ends[column]]
}

const (
	maxDigits = 15 // of a whole number: its hundredths fit an int64
	maxWhole  = 12 // digits before a decimal's point: millionths of its product with two factors up to 2.00 fit an int64
)

// Int parses a field as a whole number.
func (r *Row) Int(column int) int64 {
	text, sign := signed(r.String(column))
	n, ok := digits(text)
	if !ok || text == "" {
		return r.wrong(column, "a whole number")
	}
	return sign * n
}

// Decimal parses a field as a decimal of up to two places, and returns hundredths.
func (r *Row) Decimal(column int) int64 {
	text, sign := signed(r.String(column))
	whole, places, _ := strings.Cut(text, ".")
	n, ok := digits(whole)
	hundredths, placesOK := digits(places)
	if !ok || !placesOK || len(text) == 0 || len(whole) > maxWhole || len(places) > 2 || text[0] == '.' || text[len(text)-1] == '.' {
		return r.wrong(column, "a decimal of up to two places")
	}
	if len(places) == 1 {
		hundredths *= 10
	}
	return sign * (n*100 + hundredths)
}

// Times returns the product of two fields. If it does not fit an int64, the map fails.
func (r *Row) Times(a, b int64) int64 {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high > 0 || low > math.MaxInt64 {
		r.fail("%d times %d does not fit an int64", a, b)
		return 0
	}
	return a * b
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func signed(text string) (rest string, sign int64) {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		return rest, -1
	}
	return text, 1
}

func digits(text string) (n int64, ok bool) {
	if len(text) > maxDigits {
		return 0, false
	}
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}

// Date is a day. Later days are larger.
type Date int32 // yyyymmdd

// Date parses a field as a day like 1998-12-01.
func (r *Row) Date(column int) Date {
	d, ok := parseDate(r.String(column))
	if !ok {
		r.wrong(column, "a date")
	}
	return d
}

// Within reports whether a day is first or later, and before the other day.
func (d Date) Within(first, before Date) bool { return first <= d && d < before }

// Day parses a constant like 1998-12-01, and panics if it is not a date.
func Day(text string) Date {
	d, ok := parseDate(text)
	if !ok {
		panic(fmt.Sprintf("%q is not a date", text))
	}
	return d
}

func parseDate(s string) (Date, bool) {
	if len(s) != len("1998-12-01") || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, yOK := digits(s[:4])
	m, mOK := digits(s[5:7])
	d, dOK := digits(s[8:])
	if !yOK || !mOK || !dOK {
		return 0, false
	}
	t := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC) // 31 February becomes a day in March
	return Date(y*10000 + m*100 + d), t.Month() == time.Month(m) && t.Day() == int(d)
}

func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d/10000, d/100%100, d%100) }

// Fixed prints n, which counts units of the given decimal places.
func Fixed(n int64, places int) string {
	sign := ""
	if n < 0 {
		sign = "-"
	}
	text := fmt.Sprintf("%0*d", places+1, magnitude(n))
	return sign + text[:len(text)-places] + "." + text[len(text)-places:]
}

// Average divides a sum by a positive count. It rounds halves away from zero, as SQL
// does for decimals.
func Average(sum, count int64) int64 {
	whole, rest := sum/count, sum%count
	switch { // written without sums that may overflow
	case rest >= count-rest:
		whole++
	case -rest >= count+rest:
		whole--
	}
	return whole
}
