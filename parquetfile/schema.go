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
	Local    bool   // a time without a time zone
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
	maxRep uint8
}

// Node is a column or group of the schema.
type Node struct {
	Name     string
	Optional bool
	Repeated bool
	Shape    Shape
	Children []*Node
	Column   int // of a Leaf

	inside         bool // the element of a List is the only child of the repeated node
	maxDef, maxRep uint8
}

// Shape says what a node is.
type Shape uint8

// Lists and maps are groups with an annotation and a form that the format's specification defines, older ones too. Others
// are plain groups.
const (
	Leaf Shape = iota
	Group
	List // Children is the repeated node, see [Node.Element]
	Map  // Children is a repeated Group of key and value
)

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

// setSchema sets the columns and groups of a schema.
func (f *File) setSchema(schema []format.SchemaElement) error {
	if len(schema) == 0 || !schema[0].NumChildren.Valid {
		return damaged("the schema has no root")
	}
	s := schemaReader{rest: schema[1:]}
	f.Root = &Node{Shape: Group}
	if err := s.group(f.Root, ColumnInfo{}, schema[0].NumChildren.V); err != nil {
		return err
	}
	if len(s.rest) > 0 {
		return damaged("the schema has %d elements that belong to no group", len(s.rest))
	}
	f.Columns = s.leaves
	return nil
}

type schemaReader struct {
	rest   []format.SchemaElement
	leaves []ColumnInfo
}

// group reads the elements of a group into its node.
func (s *schemaReader) group(n *Node, parent ColumnInfo, children int32) error {
	if children < 0 || len(parent.path) > maxDepth {
		return damaged("the schema's group %q has %d elements at depth %d", parent.Name, children, len(parent.path))
	}
	for range children {
		if len(s.rest) == 0 {
			return damaged("the schema's group %q has %d elements, which the schema has not", parent.Name, children)
		}
		e := &s.rest[0]
		s.rest = s.rest[1:]
		child, err := s.element(e, parent)
		if err != nil {
			return err
		}
		n.Children = append(n.Children, child)
	}
	return nil
}

// element reads a column, or a group with its elements.
func (s *schemaReader) element(e *format.SchemaElement, parent ColumnInfo) (*Node, error) {
	c := parent
	c.path = append(parent.path[:len(parent.path):len(parent.path)], e.Name)
	c.Name = strings.Join(c.path, ".")
	n := &Node{Name: e.Name, Column: len(s.leaves)}
	switch e.RepetitionType.V {
	case format.Required:
	case format.Optional:
		c.maxDef, c.Optional, n.Optional = c.maxDef+1, true, true
	case format.Repeated:
		c.maxDef, c.maxRep, c.Repeated, n.Repeated = c.maxDef+1, c.maxRep+1, true, true
	default:
		return nil, damaged("column %s has repetition %d", c.Name, e.RepetitionType.V)
	}
	n.maxDef, n.maxRep = c.maxDef, c.maxRep
	if !e.Type.Valid {
		n.Shape = Group
		err := s.group(n, c, e.NumChildren.V)
		n.annotate(e)
		return n, err
	}
	var err error
	if c.Type, c.Note, err = typeOf(e); err != nil {
		return nil, fmt.Errorf("column %s: %w", c.Name, err)
	}
	s.leaves = append(s.leaves, c)
	return n, nil
}

// annotate makes lists and maps of groups that are annotated so and have such a form.
func (n *Node) annotate(e *format.SchemaElement) {
	if len(n.Children) != 1 || !n.Children[0].Repeated {
		return
	}
	_, list := e.LogicalType.Value.(*format.ListType)
	_, isMap := e.LogicalType.Value.(*format.MapType)
	if c := e.ConvertedType; c.Valid {
		list, isMap = list || c.V == deprecated.List, isMap || c.V == deprecated.Map || c.V == deprecated.MapKeyValue
	}
	entry := n.Children[0]
	switch {
	case isMap && entry.Shape == Group && len(entry.Children) == 2 && !entry.Children[0].Repeated:
		n.Shape = Map
	case list:
		n.Shape, n.inside = List, !entry.isElement(n.Name)
	}
}

// isElement reports whether the repeated node of a list with a name is the element, and not its only child. The rules
// for older writers are those of the specification.
func (n *Node) isElement(list string) bool {
	return n.Shape != Group || len(n.Children) != 1 || n.Children[0].Repeated || n.Name == "array" || n.Name == list+"_tuple"
}

// Element returns the element of a List. If it is Repeated, that is the list's own repetition.
func (n *Node) Element() *Node {
	if n.inside {
		return n.Children[0].Children[0]
	}
	return n.Children[0]
}

// Pick returns the node with only some of its children. Rows then have only these, and no other columns are read.
func (n *Node) Pick(children ...*Node) *Node {
	picked := *n
	picked.Children = children
	return &picked
}

// PickElement returns a List with another element, which Pick has returned.
func (n *Node) PickElement(element *Node) *Node {
	if n.inside {
		element = n.Children[0].Pick(element)
	}
	return n.Pick(element)
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
		t.Local = !l.IsAdjustedToUTC
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

// maxDigits is more than any writer's.
const maxDigits = 10_000

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
		ok = t.Scale >= 0 && t.Scale <= t.Digits && t.Digits <= maxDigits && (wide || t.Physical == format.Int32 || t.Physical == format.ByteArray || t.Physical == format.FixedLenByteArray)
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
