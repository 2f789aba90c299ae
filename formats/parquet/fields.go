package parquet

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"

	"github.com/quernmr/quern/parquetfile"
)

// field is a field of the program's struct.
type field struct {
	name     string // of the column
	own      string // name of the field
	title    string // the same with the struct's name, for messages
	offset   uintptr
	kind     reflect.Type // without pointer
	pointer  bool
	optional bool
	date     bool
	list     bool // its tag has list
	scale    int  // of a decimal; -1: no decimal
	unit     string
}

// String returns the type of the field, for messages.
func (f *field) String() string {
	name := f.kind.String()
	if f.pointer {
		name = "*" + name
	}
	switch {
	case f.scale >= 0:
		name += fmt.Sprintf(" with decimal scale %d", f.scale)
	case f.date:
		name += " with date"
	case f.unit != "":
		name += " with timestamp in " + f.unit
	}
	return name
}

// fieldsOf returns the fields that are columns.
func fieldsOf(row reflect.Type) (all []field, err error) {
	if row.Kind() != reflect.Struct {
		return nil, mismatched("records of Parquet files are structs, not %s", row)
	}
	for i := range row.NumField() {
		of := row.Field(i)
		tag := of.Tag.Get("parquet")
		if tag == "-" || !of.IsExported() {
			continue
		}
		f := field{name: of.Name, own: of.Name, title: row.Name() + "." + of.Name, offset: of.Offset, kind: of.Type, scale: -1}
		if f.pointer = of.Type.Kind() == reflect.Pointer; f.pointer {
			f.kind = of.Type.Elem()
		}
		options := strings.Split(tag, ",")
		if options[0] != "" {
			f.name = options[0]
		}
		for _, option := range options[1:] {
			if err := f.setOption(option); err != nil {
				return nil, mismatched("field %s: %v", f.title, err)
			}
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, mismatched("struct %s has no field that is a column", row)
	}
	return all, nil
}

// units are the names of units in tags.
var units = map[string]string{"": "MILLIS", "millisecond": "MILLIS", "microsecond": "MICROS", "nanosecond": "NANOS"}

// writerOptions are options that only the writer of files needs.
var writerOptions = map[string]bool{"snappy": true, "gzip": true, "brotli": true, "zstd": true, "lz4": true, "uncompressed": true, "plain": true, "dict": true, "delta": true, "split": true, "string": true, "enum": true}

func (f *field) setOption(option string) error {
	name, argument, _ := strings.Cut(strings.TrimSuffix(option, ")"), "(")
	switch name {
	case "optional":
		f.optional = true
	case "date":
		f.date = true
	case "list":
		f.list = true
	case "timestamp":
		unit, ok := units[argument]
		if !ok {
			return fmt.Errorf("the unit %q in its tag is not millisecond, microsecond or nanosecond", argument)
		}
		f.unit = unit
	case "decimal":
		scale, _, _ := strings.Cut(argument, ":")
		n, err := strconv.ParseUint(scale, 10, 8)
		if err != nil {
			return fmt.Errorf("%q in its tag is not decimal(scale:precision)", option)
		}
		f.scale = int(n)
	default:
		if !writerOptions[name] {
			return fmt.Errorf("its tag has %q, which is not known", option)
		}
	}
	return nil
}

var (
	timeType = reflect.TypeFor[time.Time]()
	dateType = reflect.TypeFor[Date]()
)

// newSource returns the source of a column.
func newSource(u *use) (source, error) {
	if u.info.Repeated {
		return nil, mismatched("column %s has type %s, which filters do not compare", u.info.Name, u.info.TypeName())
	}
	switch u.info.Type.Physical {
	case format.Boolean:
		return sourceOf(u, setBool, testBool)
	case format.Int32:
		return sourceOf(u, setInteger[int32], testInteger[int32])
	case format.Int64:
		return sourceOf(u, setInteger[int64], testInteger[int64])
	case format.Float:
		return sourceOf(u, setFloat[float32], testFloat[float32])
	case format.Double:
		return sourceOf(u, setFloat[float64], testFloat[float64])
	}
	return sourceOf(u, setText, testText)
}

func sourceOf[V parquetfile.Value](u *use, set func(*parquetfile.ColumnInfo, *field) setter[V], test func(*parquetfile.ColumnInfo, condition) (test[V], error)) (source, error) {
	s := &typed[V]{use: *u, values: make([]V, batch), null: make([]bool, batch)}
	for _, f := range u.fields {
		one := set(u.info, f)
		if one == nil {
			return nil, otherType(u.info, f)
		}
		s.setters = append(s.setters, one)
		if f.kind.Kind() == reflect.Slice {
			s.copies++
		}
	}
	for _, c := range u.conditions {
		one, err := test(u.info, c)
		if err != nil {
			return nil, err
		}
		s.tests = append(s.tests, one)
	}
	return s, nil
}

func otherType(c *parquetfile.ColumnInfo, f *field) error {
	return mismatched("column %s has type %s, but field %s has type %s", c.Name, c.TypeName(), f.title, f)
}

// assign returns the setter of fields of type F.
func assign[V parquetfile.Value, F any](f *field, convert func(V) F) setter[V] {
	offset := f.offset
	if !f.pointer {
		return func(values []V, _ []bool, r rows) { // nulls have the value zero
			if same, ok := any(values).([]F); ok { // no conversion changes them
				for i, v := range same {
					*(*F)(r.at(i, offset)) = v
				}
				return
			}
			for i, v := range values {
				*(*F)(r.at(i, offset)) = convert(v)
			}
		}
	}
	return func(values []V, null []bool, r rows) {
		converted := make([]F, len(values)) // programs may keep the pointers
		for i, v := range values {
			to := (**F)(r.at(i, offset))
			if null != nil && null[i] {
				*to = nil
				continue
			}
			converted[i] = convert(v)
			*to = &converted[i]
		}
	}
}

// assignZero is assign for values that become another value than F's zero value if they are zero.
func assignZero[V parquetfile.Value, F any](f *field, convert func(V) F) setter[V] {
	set := assign(f, convert)
	if f.pointer {
		return set
	}
	return func(values []V, null []bool, r rows) {
		set(values, null, r)
		for i := range null {
			if null[i] {
				*(*F)(r.at(i, f.offset)) = *new(F)
			}
		}
	}
}

func same[V any](v V) V { return v }

func setBool(c *parquetfile.ColumnInfo, f *field) setter[bool] {
	if f.kind.Kind() == reflect.Bool && c.Type.Logical == parquetfile.Plain {
		return assign(f, same[bool])
	}
	return nil
}

func setFloat[V float32 | float64](c *parquetfile.ColumnInfo, f *field) setter[V] {
	switch {
	case c.Type.Logical != parquetfile.Plain:
		return nil
	case f.kind.Kind() == reflect.Float64:
		return assign(f, func(v V) float64 { return float64(v) })
	case f.kind.Kind() == reflect.Float32 && c.Type.Physical == format.Float:
		return assign(f, func(v V) float32 { return float32(v) })
	}
	return nil
}

func setText(c *parquetfile.ColumnInfo, f *field) setter[string] {
	if c.Type.Physical == format.Int96 {
		if f.kind == timeType && c.Type.Logical == parquetfile.Plain {
			return assignZero(f, parquetfile.TimeOf96)
		}
		return nil
	}
	switch logical := c.Type.Logical; {
	case logical != parquetfile.Plain && logical != parquetfile.String:
	case f.kind.Kind() == reflect.String:
		return assign(f, same[string])
	case f.kind.Kind() == reflect.Slice && f.kind.Elem().Kind() == reflect.Uint8:
		return assignZero(f, func(v string) []byte { return []byte(v) })
	}
	return nil
}

// setInteger returns the setter for INT32 and INT64.
func setInteger[V int32 | int64](c *parquetfile.ColumnInfo, f *field) setter[V] {
	t, plain := c.Type, f.scale < 0 && !f.date && f.unit == ""
	bits := int(unsafe.Sizeof(V(0))) * 8
	switch t.Logical {
	case parquetfile.Plain:
		if plain && f.kind != dateType {
			return signed[V](f, bits)
		}
	case parquetfile.Signed:
		if plain && f.kind != dateType {
			return signed[V](f, int(t.Bits))
		}
	case parquetfile.Unsigned:
		if plain {
			return unsigned[V](f, int(t.Bits))
		}
	case parquetfile.Decimal:
		if f.scale == int(t.Scale) && f.kind != dateType {
			return signed[V](f, bits)
		}
	case parquetfile.Date:
		if f.kind == timeType {
			return assignZero(f, func(v V) time.Time { return Date(v).Time() })
		}
		if (f.date && f.scale < 0 && f.unit == "") || f.kind == dateType {
			return signed[V](f, bits)
		}
	case parquetfile.Timestamp:
		if f.kind == timeType {
			return assignZero(f, func(v V) time.Time { return parquetfile.TimeOf(int64(v), t.Unit) })
		}
		if f.unit == t.Unit && f.scale < 0 && !f.date {
			return signed[V](f, bits)
		}
	}
	return nil
}

// signed returns the setter for a signed integer with at least this many bits.
func signed[V int32 | int64](f *field, bits int) setter[V] {
	switch f.kind.Kind() {
	case reflect.Int64:
		return assign(f, func(v V) int64 { return int64(v) })
	case reflect.Int:
		if bits <= strconv.IntSize {
			return assign(f, func(v V) int { return int(v) })
		}
	case reflect.Int32:
		if bits <= 32 {
			return assign(f, func(v V) int32 { return int32(v) })
		}
	case reflect.Int16:
		if bits <= 16 {
			return assign(f, func(v V) int16 { return int16(v) })
		}
	case reflect.Int8:
		if bits <= 8 {
			return assign(f, func(v V) int8 { return int8(v) })
		}
	}
	return nil
}

func unsigned[V int32 | int64](f *field, bits int) setter[V] {
	mask := ^uint64(0) >> (64 - bits)
	switch f.kind.Kind() {
	case reflect.Uint64:
		return assign(f, func(v V) uint64 { return uint64(v) & mask })
	case reflect.Uint:
		if bits <= strconv.IntSize {
			return assign(f, func(v V) uint { return uint(uint64(v) & mask) })
		}
	case reflect.Uint32:
		if bits <= 32 {
			return assign(f, func(v V) uint32 { return uint32(uint64(v) & mask) })
		}
	case reflect.Uint16:
		if bits <= 16 {
			return assign(f, func(v V) uint16 { return uint16(uint64(v) & mask) })
		}
	case reflect.Uint8:
		if bits <= 8 {
			return assign(f, func(v V) uint8 { return uint8(uint64(v) & mask) })
		}
	}
	return nil
}
