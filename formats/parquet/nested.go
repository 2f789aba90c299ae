package parquet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"

	"github.com/quernmr/quern/parquetfile"
)

// nested is the source of a field that is a list, map or struct. It reads a row at a time.
type nested struct {
	field  *field
	node   *parquetfile.Node // with the columns that the field has
	put    put
	rows   *parquetfile.Rows
	read   []any // rows that were read ahead
	next   int   // of them, that no batch has had
	values []any // of the batch
}

// batchValues ends a batch, since nulls in lists, and copies of texts, take memory, but no bytes of the file.
const batchValues = 1 << 20

// put sets the memory at an address to a value.
type put func(at unsafe.Pointer, v any) error

// nestedSource returns the source of a field; nil if its column has one value in each row.
func nestedSource(f *parquetfile.File, fl *field) (source, error) {
	n, err := find(f.Root, fl.name)
	if err != nil || n == nil {
		return nil, err
	}
	if n.Shape == parquetfile.Leaf && !n.Repeated && !fl.isNested() {
		return nil, nil
	}
	s := &nested{field: fl}
	s.put, s.node, err = putter{f}.value(n, fl)
	return s, err
}

// isNested reports whether a field's values have parts.
func (f *field) isNested() bool {
	switch f.kind.Kind() {
	case reflect.Slice:
		return f.kind.Elem().Kind() != reflect.Uint8
	case reflect.Struct:
		return f.kind != timeType
	}
	return f.kind.Kind() == reflect.Map
}

// find returns the node with a name in a group; nil if there is none.
func find(n *parquetfile.Node, name string) (*parquetfile.Node, error) {
	var found *parquetfile.Node
	for _, child := range n.Children {
		rest, below := strings.CutPrefix(name, child.Name+".")
		switch {
		case child.Name == name && found != nil:
			return nil, mismatched("there are several columns with the name %s", name)
		case child.Name == name:
			found = child
		case below && child.Shape == parquetfile.Group && !child.Repeated:
			deeper, err := find(child, rest)
			if err != nil || deeper != nil {
				return deeper, err
			}
		}
	}
	return found, nil
}

func (s *nested) open(f *parquetfile.File, group int) (bool, error) {
	var err error
	s.read, s.next = s.read[:0], 0
	s.rows, err = f.ReadRows(group, s.node)
	return true, err
}

func (s *nested) ahead(n int) (int, error) {
	if s.next == len(s.read) {
		s.read, s.next = s.read[:0], 0
		for most := s.rows.Taken() + batchValues; len(s.read) < n && s.rows.Taken() < most; {
			v, err := s.rows.Next()
			if err != nil {
				return 0, err
			}
			s.read = append(s.read, v)
		}
	}
	return min(n, len(s.read)-s.next), nil
}

func (s *nested) load(n int) error {
	s.values = s.read[s.next : s.next+n]
	s.next += n
	return nil
}

func (s *nested) test([]bool) {}

func (s *nested) copied(int) int { return 0 } // ahead counts texts

func (s *nested) set(r rows, from int, first int64) error {
	for i, v := range s.values[from : from+r.n] {
		if err := s.put(r.at(i, s.field.offset), v); err != nil {
			return mismatched("row %d of a row group: %v", first+int64(i), err)
		}
	}
	return nil
}

// putter makes puts for the nodes of a file. A put comes with the node that has only the columns that it needs.
type putter struct{ f *parquetfile.File }

// value returns the put of a node.
func (p putter) value(n *parquetfile.Node, fl *field) (put, *parquetfile.Node, error) {
	one, list := p.one, n.Repeated || n.Shape == parquetfile.List || n.Shape == parquetfile.Map
	if n.Repeated {
		one = p.repeated
	}
	set, picked, err := one(n, fl)
	if err != nil {
		return nil, nil, err
	}
	whole := fl.kind
	if fl.pointer {
		whole = reflect.PointerTo(whole)
	}
	return func(at unsafe.Pointer, v any) error {
		switch {
		case v == nil && (fl.pointer || fl.optional || list):
			reflect.NewAt(whole, at).Elem().SetZero()
			return nil
		case v == nil:
			return fmt.Errorf("column %s is null, but field %s is no pointer and has no optional in its tag", n.Name, fl.title)
		case !fl.pointer:
			return set(at, v)
		}
		to := reflect.New(fl.kind)
		reflect.NewAt(whole, at).Elem().Set(to)
		return set(to.UnsafePointer(), v)
	}, picked, nil
}

// one returns the put of one element of a node that is there.
func (p putter) one(n *parquetfile.Node, fl *field) (put, *parquetfile.Node, error) {
	kind := fl.kind.Kind()
	switch {
	case n.Shape == parquetfile.Leaf:
		set, err := p.leaf(&p.f.Columns[n.Column], fl)
		return set, n, err
	case n.Shape == parquetfile.List && kind == reflect.Slice:
		element := n.Element()
		each := p.value
		if element.Repeated {
			each = p.one
		}
		set, picked, err := each(element, fl.part(fl.kind.Elem(), "[]"))
		if err != nil {
			return nil, nil, err
		}
		return sliceOf(fl.kind, set), n.PickElement(picked), nil
	case n.Shape == parquetfile.Map && kind == reflect.Map:
		return p.entries(n, fl)
	case n.Shape == parquetfile.Group && kind == reflect.Struct && fl.kind != timeType:
		return p.group(n, fl)
	}
	return nil, nil, unfit(n, fl)
}

func unfit(n *parquetfile.Node, fl *field) error {
	shape := map[parquetfile.Shape]string{parquetfile.List: "list", parquetfile.Map: "map"}[n.Shape]
	if shape == "" {
		shape = "group"
	}
	return mismatched("column %s is a %s, but field %s has type %s", n.Name, shape, fl.title, fl)
}

// repeated returns the put of a node that is repeated without being a List.
func (p putter) repeated(n *parquetfile.Node, fl *field) (put, *parquetfile.Node, error) {
	if fl.kind.Kind() != reflect.Slice {
		return nil, nil, mismatched("column %s is repeated, but field %s has type %s", n.Name, fl.title, fl)
	}
	set, picked, err := p.one(n, fl.part(fl.kind.Elem(), "[]"))
	return sliceOf(fl.kind, set), picked, err
}

// part is the field of an element. The options of the whole field are those of its parts.
func (f *field) part(kind reflect.Type, name string) *field {
	p := *f
	p.title, p.offset, p.kind = f.title+name, 0, kind
	if p.pointer = kind.Kind() == reflect.Pointer; p.pointer {
		p.kind = kind.Elem()
	}
	return &p
}

// sliceOf returns the put of slices, by that of their elements.
func sliceOf(of reflect.Type, element put) put {
	return func(at unsafe.Pointer, v any) error {
		all := v.([]any)
		s := reflect.MakeSlice(of, len(all), len(all))
		for i, v := range all {
			if err := element(s.Index(i).Addr().UnsafePointer(), v); err != nil {
				return err
			}
		}
		reflect.NewAt(of, at).Elem().Set(s)
		return nil
	}
}

func (p putter) entries(n *parquetfile.Node, fl *field) (put, *parquetfile.Node, error) {
	entry := n.Children[0]
	keys, key, err := p.value(entry.Children[0], fl.part(fl.kind.Key(), " as key"))
	if err != nil {
		return nil, nil, err
	}
	if fl.kind.Key().Kind() == reflect.Pointer {
		return nil, nil, mismatched("field %s has keys of type %s, which are not compared by value", fl.title, fl.kind.Key())
	}
	values, value, err := p.value(entry.Children[1], fl.part(fl.kind.Elem(), " as value"))
	if err != nil {
		return nil, nil, err
	}
	return func(at unsafe.Pointer, v any) error {
		all := v.([]parquetfile.Entry)
		m := reflect.MakeMapWithSize(fl.kind, len(all))
		for _, e := range all {
			k, v := reflect.New(fl.kind.Key()), reflect.New(fl.kind.Elem())
			if err := keys(k.UnsafePointer(), e.Key); err != nil {
				return err
			}
			if err := values(v.UnsafePointer(), e.Value); err != nil {
				return err
			}
			m.SetMapIndex(k.Elem(), v.Elem())
		}
		reflect.NewAt(fl.kind, at).Elem().Set(m)
		return nil
	}, n.Pick(entry.Pick(key, value)), nil
}

// group returns the put of a struct. Columns without a field are not read.
func (p putter) group(n *parquetfile.Node, fl *field) (put, *parquetfile.Node, error) {
	fields, err := fieldsOf(fl.kind)
	if err != nil {
		return nil, nil, err
	}
	puts := make([]put, len(fields))
	var picked, taken []*parquetfile.Node
	for i := range fields {
		child, err := find(&parquetfile.Node{Children: n.Children}, fields[i].name)
		if err != nil {
			return nil, nil, err
		}
		if child == nil || !slices.Contains(n.Children, child) || slices.Contains(taken, child) {
			return nil, nil, mismatched("column %s has no column %s of its own, which field %s needs", n.Name, fields[i].name, fields[i].title)
		}
		var part *parquetfile.Node
		if puts[i], part, err = p.value(child, &fields[i]); err != nil {
			return nil, nil, err
		}
		picked, taken = append(picked, part), append(taken, child)
	}
	return func(at unsafe.Pointer, v any) error {
		for i, v := range v.(parquetfile.Struct) {
			if err := puts[i](unsafe.Add(at, fields[i].offset), v); err != nil {
				return err
			}
		}
		return nil
	}, n.Pick(picked...), nil
}

// leaf returns the put of a column.
func (p putter) leaf(c *parquetfile.ColumnInfo, fl *field) (put, error) {
	switch c.Type.Physical {
	case format.Boolean:
		return leafOf(c, fl, setBool)
	case format.Int32:
		return leafOf(c, fl, setInteger[int32])
	case format.Int64:
		return leafOf(c, fl, setInteger[int64])
	case format.Float:
		return leafOf(c, fl, setFloat[float32])
	case format.Double:
		return leafOf(c, fl, setFloat[float64])
	}
	return leafOf(c, fl, setText)
}

func leafOf[V parquetfile.Value](c *parquetfile.ColumnInfo, fl *field, setter func(*parquetfile.ColumnInfo, *field) setter[V]) (put, error) {
	one := *fl
	one.pointer, one.offset = false, 0
	set := setter(c, &one)
	if set == nil {
		return nil, otherType(c, fl)
	}
	values := make([]V, 1)
	return func(at unsafe.Pointer, v any) error {
		values[0] = v.(V)
		set(values, nil, rows{first: at, n: 1})
		return nil
	}, nil
}
