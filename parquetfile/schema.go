package parquetfile

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Type is the type of a column's values. Types are comparable.
type Type struct {
	Physical format.Type
	Length   int32 // bytes of FIXED_LEN_BYTE_ARRAY
	Logical  Logical
	Scale    int32  // digits after the point of a decimal
	Digits   int32  // precision of a decimal
	Bits     int8   // of an integer
	Unit     string // MILLIS, MICROS or NANOS, of times
}

// Logical is the meaning of values.
type Logical uint8

// Other is a meaning that this package does not know, such as that of UUIDs; its name is in Column.Note.
const (
	Plain Logical = iota
	String
	Signed
	Unsigned
	Decimal
	Date
	Timestamp
	Other
)

func (t Type) String() string {
	name := t.Physical.String()
	if t.Physical == format.FixedLenByteArray {
		name += fmt.Sprintf("[%d]", t.Length)
	}
	switch t.Logical {
	case String:
		return name + " STRING"
	case Signed:
		return fmt.Sprintf("%s INT(%d)", name, t.Bits)
	case Unsigned:
		return fmt.Sprintf("%s UINT(%d)", name, t.Bits)
	case Decimal:
		return fmt.Sprintf("%s DECIMAL(%d,%d)", name, t.Digits, t.Scale)
	case Date:
		return name + " DATE"
	case Timestamp:
		return fmt.Sprintf("%s TIMESTAMP(%s)", name, t.Unit)
	}
	return name
}

// ColumnInfo describes a column.
type ColumnInfo struct {
	Name     string // names of its groups and of itself, with dots between them
	Type     Type
	Note     string // name of the logical type Other
	Optional bool   // values may be null
	Repeated bool   // it is below a list or map

	path   []string
	maxDef uint8
}

// TypeName returns the type of the column, for messages.
func (c *ColumnInfo) TypeName() string {
	name := c.Type.String()
	if c.Note != "" {
		name += " " + c.Note
	}
	if c.Repeated {
		name = "list or map of " + name
	}
	return name
}

// columnsOf returns the leaves of a schema.
func columnsOf(schema []format.SchemaElement) ([]ColumnInfo, error) {
	if len(schema) == 0 || !schema[0].NumChildren.Valid {
		return nil, damaged("the schema has no root")
	}
	s := schemaReader{rest: schema[1:]}
	if err := s.group(ColumnInfo{}, schema[0].NumChildren.V); err != nil {
		return nil, err
	}
	if len(s.rest) > 0 {
		return nil, damaged("the schema has %d elements that belong to no group", len(s.rest))
	}
	return s.leaves, nil
}

type schemaReader struct {
	rest   []format.SchemaElement
	leaves []ColumnInfo
}

func (s *schemaReader) group(parent ColumnInfo, children int32) error {
	if children < 0 || len(parent.path) > maxDepth {
		return damaged("the schema's group %q has %d elements at depth %d", parent.Name, children, len(parent.path))
	}
	for range children {
		if len(s.rest) == 0 {
			return damaged("the schema's group %q has %d elements, which the schema has not", parent.Name, children)
		}
		e := &s.rest[0]
		s.rest = s.rest[1:]
		c := parent
		c.path = append(parent.path[:len(parent.path):len(parent.path)], e.Name)
		c.Name = strings.Join(c.path, ".")
		switch e.RepetitionType.V {
		case format.Required:
		case format.Optional:
			c.maxDef, c.Optional = c.maxDef+1, true
		case format.Repeated:
			c.maxDef, c.Repeated = c.maxDef+1, true
		default:
			return damaged("column %s has repetition %d", c.Name, e.RepetitionType.V)
		}
		if !e.Type.Valid {
			if err := s.group(c, e.NumChildren.V); err != nil {
				return err
			}
			continue
		}
		var err error
		if c.Type, c.Note, err = typeOf(e); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		s.leaves = append(s.leaves, c)
	}
	return nil
}

// typeOf returns the type of a leaf, and the name of a logical type that is Other.
func typeOf(e *format.SchemaElement) (t Type, note string, err error) {
	t.Physical = e.Type.V
	if t.Physical < format.Boolean || t.Physical > format.FixedLenByteArray {
		return t, "", damaged("physical type %d", t.Physical)
	}
	if t.Physical == format.FixedLenByteArray {
		if t.Length = e.TypeLength.V; t.Length < 1 || t.Length > 1<<20 {
			return t, "", damaged("values of %d bytes", t.Length)
		}
	}
	switch l := e.LogicalType.Value.(type) {
	case nil:
		note = t.setConverted(e)
	case *format.StringType, *format.EnumType, *format.JsonType:
		t.Logical = String
	case *format.IntType:
		t.setInteger(l.BitWidth, l.IsSigned)
	case *format.DecimalType:
		t.Logical, t.Scale, t.Digits = Decimal, l.Scale, l.Precision
	case *format.DateType:
		t.Logical = Date
	case *format.TimestampType:
		switch l.Unit.Value.(type) {
		case *format.MilliSeconds:
			t.Logical, t.Unit = Timestamp, "MILLIS"
		case *format.MicroSeconds:
			t.Logical, t.Unit = Timestamp, "MICROS"
		case *format.NanoSeconds:
			t.Logical, t.Unit = Timestamp, "NANOS"
		default:
			return t, "", damaged("a timestamp has no unit")
		}
	default:
		t.Logical, note = Other, e.LogicalType.String()
	}
	return t, note, t.check()
}

func (t *Type) setInteger(bits int8, signed bool) {
	t.Logical, t.Bits = Unsigned, bits
	if signed {
		t.Logical = Signed
	}
}

// setConverted sets the logical type from the older annotation.
func (t *Type) setConverted(e *format.SchemaElement) (note string) {
	if !e.ConvertedType.Valid {
		return ""
	}
	switch c := e.ConvertedType.V; c {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		t.Logical = String
	case deprecated.Decimal:
		t.Logical, t.Scale, t.Digits = Decimal, e.Scale.V, e.Precision.V
	case deprecated.Date:
		t.Logical = Date
	case deprecated.TimestampMillis:
		t.Logical, t.Unit = Timestamp, "MILLIS"
	case deprecated.TimestampMicros:
		t.Logical, t.Unit = Timestamp, "MICROS"
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		t.setInteger(8<<(c-deprecated.Uint8), false)
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		t.setInteger(8<<(c-deprecated.Int8), true)
	default:
		t.Logical, note = Other, fmt.Sprintf("of converted type %d", c)
	}
	return note
}

// check refuses logical types that the physical type does not have.
func (t *Type) check() error {
	wide := t.Physical == format.Int64
	ok := true
	switch t.Logical {
	case String:
		ok = t.Physical == format.ByteArray || t.Physical == format.FixedLenByteArray
	case Signed, Unsigned:
		ok = wide && t.Bits == 64 || t.Physical == format.Int32 && (t.Bits == 8 || t.Bits == 16 || t.Bits == 32)
	case Decimal:
		ok = t.Scale >= 0 && t.Scale <= t.Digits && (wide || t.Physical == format.Int32 || t.Physical == format.ByteArray || t.Physical == format.FixedLenByteArray)
	case Date:
		ok = t.Physical == format.Int32
	case Timestamp:
		ok = wide
	}
	if !ok {
		return damaged("it has the impossible type %s", t)
	}
	return nil
}
