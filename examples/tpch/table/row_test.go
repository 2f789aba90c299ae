package table

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

func TestFields(t *testing.T) {
	for _, c := range []struct {
		text string
		read func(*Row, int) int64
		want int64
		err  string // part of the error; "": none
	}{
		{"0", (*Row).Int, 0, ""},
		{"-17", (*Row).Int, -17, ""},
		{"999999999999999", (*Row).Int, 999_999_999_999_999, ""},
		{"", (*Row).Int, 0, "whole number"},
		{"-", (*Row).Int, 0, "whole number"},
		{"1.0", (*Row).Int, 0, `field 2, b: "1.0" is not a whole number`},
		{" 1", (*Row).Int, 0, "whole number"},
		{"1000000000000000", (*Row).Int, 0, "whole number"},
		{"12.34", (*Row).Decimal, 1234, ""},
		{"12.3", (*Row).Decimal, 1230, ""},
		{"12", (*Row).Decimal, 1200, ""},
		{"-0.05", (*Row).Decimal, -5, ""},
		{"", (*Row).Decimal, 0, "decimal"},
		{".5", (*Row).Decimal, 0, "decimal"},
		{"5.", (*Row).Decimal, 0, "decimal"},
		{".", (*Row).Decimal, 0, "decimal"},
		{"1.234", (*Row).Decimal, 0, `field 2, b: "1.234" is not a decimal of up to two places`},
		{"1,2", (*Row).Decimal, 0, "decimal"},
		{"1e3", (*Row).Decimal, 0, "decimal"},
		{"--1", (*Row).Decimal, 0, "decimal"},
		{"1234567890123.00", (*Row).Decimal, 0, "decimal"},
		{"1.-1", (*Row).Decimal, 0, "decimal"},
		{"NaN", (*Row).Decimal, 0, "decimal"},
		{"1998-12-01", day, 19981201, ""},
		{"1998-13-01", day, 0, "date"},
		{"1998-12-32", day, 0, "date"},
		{"1995-02-29", day, 0, "date"},
		{"1996-02-29", day, 19960229, ""},
		{"1998-12-1", day, 0, "date"},
		{"1998/12/01", day, 0, "date"},
	} {
		r := &Row{table: New("t", "a", "b", "c")}
		r.read("x|" + c.text + "|y|")
		if got := c.read(r, 1); got != c.want && c.err == "" {
			t.Errorf("%q is %d, want %d", c.text, got, c.want)
		}
		if (r.err == nil) != (c.err == "") || r.err != nil && !strings.Contains(r.err.Error(), c.err) {
			t.Errorf("%q: %v, want %q", c.text, r.err, c.err)
		}
	}
}

func day(r *Row, column int) int64 { return int64(r.Date(column)) }

// TestTimes: a product is exact, or the row has an error.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		fits bool
	}{
		{0, math.MinInt64, true}, {-7, 3, true}, {1 << 31, 1 << 31, true}, {-1 << 32, 1 << 30, true}, {math.MaxInt64, -1, true},
		{1 << 32, 1 << 31, false}, {-1 << 33, 1 << 32, false}, {math.MinInt64, -1, false}, {99_999_999_999_999, -99_999_999_999_999, false},
	} {
		r := new(Row)
		got := r.Times(c.a, c.b)
		if c.fits && (r.err != nil || got != c.a*c.b) || !c.fits && (r.err == nil || !strings.Contains(r.err.Error(), "does not fit")) {
			t.Errorf("%d times %d is %d (%v)", c.a, c.b, got, r.err)
		}
	}
}

func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"1|2|":    "",
		"||":      "",
		"":        "0 fields that end with '|', want 2",
		"1|2":     "1 fields",
		"1|2|3|":  `more than 2 fields: "3|"`,
		"1|2|\r":  "more than 2 fields",
		"1|\xff|": "",
	} {
		r := &Row{table: New("t", "a", "b")}
		r.read(line)
		if (r.err == nil) != (want == "") || r.err != nil && !strings.Contains(r.err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, r.err, want)
		}
	}
}

// TestFieldsAreSplit: a row has the fields of strings.Split, in whatever order they are asked for, or an error.
func TestFieldsAreSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, maxColumns).Draw(t, "columns")
		field := rapid.StringOfN(rapid.SampledFrom([]rune("ab}{\x00\u00fcü|")), 0, 20, -1)
		line := strings.Join(rapid.SliceOfN(field, 0, maxColumns).Draw(t, "fields"), "|") + rapid.SampledFrom([]string{"|", "", "x"}).Draw(t, "end")
		if rapid.Bool().Draw(t, "valid") {
			line = strings.Repeat("|", max(n-strings.Count(line, "|"), 0)) + line
			n = min(strings.Count(line, "|"), maxColumns)
		}
		r := &Row{table: New("t", make([]string, n)...)}
		r.read(line)
		fields := strings.Split(line, "|")
		if valid := len(fields) == n+1 && fields[n] == ""; valid != (r.err == nil) {
			t.Fatalf("%q with %d columns: %v", line, n, r.err)
		}
		if r.err != nil {
			return
		}
		for _, column := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "asked") {
			if got := r.String(column); got != fields[column] {
				t.Fatalf("field %d of %q is %q, want %q", column, line, got, fields[column])
			}
		}
	})
}

// TestDays: the days of a month are those of package time.
func TestDays(t *testing.T) {
	for _, y := range []int{0, 1, 4, 100, 400, 1900, 1995, 1996, 2000, 2100, 9999} {
		for m := range 14 {
			for d := range 33 {
				day := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC) // 31 February becomes a day in March
				want := day.Month() == time.Month(m) && day.Day() == d
				if got, ok := parseDate(fmt.Sprintf("%04d-%02d-%02d", y, m, d)); ok != want || ok && got != Date(y*10000+m*100+d) {
					t.Errorf("%04d-%02d-%02d is %d (%v), want %v", y, m, d, got, ok, want)
				}
			}
		}
	}
}

func TestFixed(t *testing.T) {
	for _, c := range []struct {
		n      int64
		places int
		want   string
	}{{0, 2, "0.00"}, {-5, 2, "-0.05"}, {123456, 4, "12.3456"}, {7, 6, "0.000007"}, {-1200, 2, "-12.00"}, {math.MinInt64, 2, "-92233720368547758.08"}} {
		if got := Fixed(c.n, c.places); got != c.want {
			t.Errorf("%d with %d places is %s, want %s", c.n, c.places, got, c.want)
		}
	}
}

func TestAverage(t *testing.T) {
	for _, c := range [][3]int64{{7, 2, 4}, {5, 3, 2}, {4, 3, 1}, {-7, 2, -4}, {-5, 3, -2}, {0, 9, 0}, {math.MaxInt64, 2, 1 << 62}, {math.MinInt64, 3, math.MinInt64/3 - 1}} {
		if got := Average(c[0], c[1]); got != c[2] {
			t.Errorf("%d / %d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// FuzzRow: if a decimal or date is parsed, printed and parsed again, the value is the same.
func FuzzRow(f *testing.F) {
	for _, line := range []string{"12.34|1995-01-02|", "-0.5|x|", "|", "1|2|3|", "000.00|0000-01-01|"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := &Row{table: New("t", "a", "b")}
		var n int64
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(line), func() {
			r = &Row{table: r.table}
			if r.read(line); r.err == nil {
				n = r.Decimal(0)
				r.Date(1)
			}
		})
		if r.err != nil {
			return
		}
		again := &Row{table: r.table}
		again.read(Fixed(n, 2) + "|" + r.Date(1).String() + "|")
		if again.Decimal(0) != n || again.Date(1) != r.Date(1) || again.err != nil {
			t.Errorf("%q is %d, which is printed as %q and not parsed again: %v", line, n, again.line, again.err)
		}
	})
}
