package parquet

import (
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"time"

	"github.com/quernmr/quern/parquetfile"
)

// Filter accepts rows that meet all its conditions. The zero Filter accepts all rows. It is exact: conditions are
// tested on each row, and statistics only save the reading of row groups without any wanted row.
type Filter struct{ conditions []condition }

type condition struct {
	column string
	is     Comparison
	value  any
}

// Comparison compares a column with a value.
type Comparison uint8

// The comparisons. Null meets none of them, and NaN meets only NotEqual.
const (
	Less Comparison = iota
	AtMost
	Equal
	NotEqual
	AtLeast
	Greater
)

// Decimal is a decimal number, to compare a DECIMAL column with: Value / 10^Scale. Scale must be that of the column.
type Decimal struct {
	Value int64
	Scale int
}

// Where returns a filter with one condition. The value is an integer, a float, a bool, a string or []byte; a [Decimal],
// [Date] or [time.Time] for columns of these types. A time must be a whole number of the column's units. Strings are
// compared by their bytes, false is less than true.
func Where(column string, is Comparison, value any) Filter { return Filter{}.And(column, is, value) }

// And returns the filter with one condition more.
func (f Filter) And(column string, is Comparison, value any) Filter {
	n := len(f.conditions)
	return Filter{append(f.conditions[:n:n], condition{column, is, value})}
}

// test is a condition on values of a column.
type test[V parquetfile.Value] struct {
	match func(V) bool
	maybe func(low, high []byte) bool // of the encoded bounds of many values: whether one of them may match
}

// tested returns the test of values by their keys. decode decodes a bound.
func tested[V parquetfile.Value, K cmp.Ordered](is Comparison, key func(V) K, value K, decode func([]byte) (V, bool)) test[V] {
	t := test[V]{match: map[Comparison]func(V) bool{
		Less:     func(v V) bool { return key(v) < value },
		AtMost:   func(v V) bool { return key(v) <= value },
		Equal:    func(v V) bool { return key(v) == value },
		NotEqual: func(v V) bool { return key(v) != value },
		AtLeast:  func(v V) bool { return key(v) >= value },
		Greater:  func(v V) bool { return key(v) > value },
	}[is]}
	t.maybe = func(low, high []byte) bool {
		l, ok1 := decode(low)
		h, ok2 := decode(high)
		if low == nil || high == nil || !ok1 || !ok2 || !(key(l) <= key(h)) { // NaN is in no order
			return true
		}
		return possible(is, key(l), key(h), value)
	}
	return t
}

// possible reports whether a value between two bounds may match.
func possible[K cmp.Ordered](is Comparison, low, high, value K) bool {
	switch is {
	case Less:
		return low < value
	case AtMost:
		return low <= value
	case Equal:
		return low <= value && value <= high
	case NotEqual:
		_, isFloat := any(value).(float64) // bounds leave out NaN, which is not equal to anything
		return isFloat || low != value || high != value
	case AtLeast:
		return high >= value
	}
	return high > value
}

func incomparable(c *parquetfile.ColumnInfo, d condition) error {
	if d.is > Greater {
		return mismatched("the filter's comparison %d of column %s is not known", d.is, c.Name)
	}
	return mismatched("column %s has type %s, and cannot be compared with %v of type %T", c.Name, c.TypeName(), d.value, d.value)
}

func testBool(c *parquetfile.ColumnInfo, d condition) (test[bool], error) {
	value, ok := d.value.(bool)
	if !ok || d.is > Greater || c.Type.Logical != parquetfile.Plain {
		return test[bool]{}, incomparable(c, d)
	}
	key := func(v bool) uint8 {
		if v {
			return 1
		}
		return 0
	}
	return tested(d.is, key, key(value), func(b []byte) (bool, bool) { return len(b) == 1 && b[0] != 0, len(b) == 1 }), nil
}

func testFloat[V float32 | float64](c *parquetfile.ColumnInfo, d condition) (test[V], error) {
	value := reflect.ValueOf(d.value)
	if !value.IsValid() || !value.CanFloat() || d.is > Greater || c.Type.Logical != parquetfile.Plain {
		return test[V]{}, incomparable(c, d)
	}
	return tested(d.is, func(v V) float64 { return float64(v) }, value.Float(), func(b []byte) (V, bool) {
		switch {
		case len(b) == 4 && any(V(0)) == any(float32(0)):
			return V(math.Float32frombits(binary.LittleEndian.Uint32(b))), true
		case len(b) == 8 && any(V(0)) == any(float64(0)):
			return V(math.Float64frombits(binary.LittleEndian.Uint64(b))), true
		}
		return 0, false
	}), nil
}

func testText(c *parquetfile.ColumnInfo, d condition) (test[string], error) {
	value, ok := d.value.(string)
	if b, isBytes := d.value.([]byte); isBytes {
		value, ok = string(b), true
	}
	if logical := c.Type.Logical; !ok || d.is > Greater || (logical != parquetfile.Plain && logical != parquetfile.String) || c.Type.Physical.String() == "INT96" {
		return test[string]{}, incomparable(c, d)
	}
	return tested(d.is, same[string], value, func(b []byte) (string, bool) { return string(b), true }), nil
}

func testInteger[V int32 | int64](c *parquetfile.ColumnInfo, d condition) (test[V], error) {
	decode := func(b []byte) (V, bool) {
		switch {
		case len(b) == 4 && any(V(0)) == any(int32(0)):
			return V(int32(binary.LittleEndian.Uint32(b))), true
		case len(b) == 8 && any(V(0)) == any(int64(0)):
			return V(int64(binary.LittleEndian.Uint64(b))), true
		}
		return 0, false
	}
	if c.Type.Logical == parquetfile.Unsigned {
		value, ok := unsignedValue(d.value)
		if !ok || d.is > Greater {
			return test[V]{}, incomparable(c, d)
		}
		mask := ^uint64(0) >> (64 - c.Type.Bits)
		return tested(d.is, func(v V) uint64 { return uint64(v) & mask }, value, decode), nil
	}
	value, ok := integerValue(c.Type, d.value)
	if !ok || d.is > Greater {
		return test[V]{}, incomparable(c, d)
	}
	return tested(d.is, func(v V) int64 { return int64(v) }, value, decode), nil
}

func unsignedValue(value any) (uint64, bool) {
	switch v := reflect.ValueOf(value); {
	case !v.IsValid():
	case v.CanUint():
		return v.Uint(), true
	case v.CanInt() && v.Int() >= 0 && v.Type() != dateType:
		return uint64(v.Int()), true
	}
	return 0, false
}

// integerValue returns a value as a column encodes it.
func integerValue(t parquetfile.Type, value any) (int64, bool) {
	v := reflect.ValueOf(value)
	switch t.Logical {
	case parquetfile.Plain, parquetfile.Signed:
		switch {
		case !v.IsValid() || v.Type() == dateType:
		case v.CanInt():
			return v.Int(), true
		case v.CanUint() && v.Uint() <= math.MaxInt64:
			return int64(v.Uint()), true
		}
	case parquetfile.Decimal:
		d, ok := value.(Decimal)
		return d.Value, ok && d.Scale == int(t.Scale)
	case parquetfile.Date:
		d, ok := value.(Date)
		return int64(d), ok
	case parquetfile.Timestamp:
		at, ok := value.(time.Time)
		n := map[string]int64{"MILLIS": at.UnixMilli(), "MICROS": at.UnixMicro(), "NANOS": at.UnixNano()}[t.Unit]
		return n, ok && parquetfile.TimeOf(n, t.Unit).Equal(at)
	}
	return 0, false
}
