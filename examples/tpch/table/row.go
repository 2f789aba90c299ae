package table

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

// Row is one line of a table. Its methods take the number of a column, from 0. If a
// method cannot parse its field, it returns zero, and the row's error fails the map.
type Row struct {
	table *Table
	task  *mapreduce.Task
	line  string
	ends  [maxColumns + wordSize]int // of the first fields, in line; a word can add more than are asked for
	found int                        // ends that are known
	at    int                        // the rest of line, in which no end is known
	err   error
}

// read takes a line and counts its fields. Their ends are found when a column is asked for.
func (r *Row) read(line string) {
	r.line, r.found, r.at, r.err = line, 0, 0, nil
	columns := len(r.table.columns)
	switch fields := strings.Count(line, "|"); {
	case fields < columns:
		r.fail("a line has %d fields that end with '|', want %d", fields, columns)
	case fields > columns || line[len(line)-1] != '|':
		r.find(columns - 1)
		r.fail("a line has more than %d fields: %.50q follows", columns, line[r.ends[columns-1]+1:])
	}
}

// wordSize is the number of bytes that find compares at once.
const wordSize = 8

// end returns the end of a field. The last one ends with the line.
func (r *Row) end(column int) int {
	if column == len(r.table.columns)-1 {
		return len(r.line) - 1
	}
	if column >= r.found {
		r.find(column)
	}
	return r.ends[column]
}

// find finds the ends of the fields up to a column. The line has so many.
func (r *Row) find(column int) {
	const ones = 1 << 64 / 255 // 0x0101…
	n := r.found
	for ; n <= column; r.at += wordSize {
		// A byte of differs is 0 where the line has '|'. Adding 0x7f to its lower bits sets the high bit of all others.
		differs := word(r.line[r.at:]) ^ '|'*ones
		hits := ^(differs&(0x7f*ones) + 0x7f*ones | differs) & (0x80 * ones)
		for ; hits != 0; hits &= hits - 1 {
			r.ends[n] = r.at + bits.TrailingZeros64(hits)/8
			n++
		}
	}
	r.found = n
}

// word returns the first bytes of a text, in the order of increasing significance, with zeros after a shorter text.
func word(s string) (w uint64) {
	if len(s) >= wordSize { // compiled to one load
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	for i := range len(s) {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
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
	start := 0
	if column > 0 {
		start = r.end(column-1) + 1
	}
	return r.line[start:r.end(column)]
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
	whole, places := text, "00"
	if point := strings.LastIndexByte(text, '.'); point >= 0 {
		whole, places = text[:point], text[point+1:]
	}
	n, ok := digits(whole)
	hundredths, placesOK := digits(places)
	switch {
	case !ok || !placesOK || whole == "" || len(whole) > maxWhole || places == "" || len(places) > 2:
		return r.wrong(column, "a decimal of up to two places")
	case len(places) == 1:
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
	return Date(y*10000 + m*100 + d), 1 <= m && m <= 12 && 1 <= d && d <= daysIn(y, m)
}

// daysIn returns the number of days of a month.
func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
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
