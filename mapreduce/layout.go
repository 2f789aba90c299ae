package mapreduce

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// A layout is the plan of a type without methods: where the parts of a value are in memory,
// and how each is encoded. It is made once for each codec, so that records cost no decisions
// of package reflect. Structs are flattened: their fields are parts of the struct around them.
//
// Encodings, besides those of codec_kinds.go. All of them mark their ends, and none is a
// prefix of another, so that bytes have the order of the values:
//
//	struct       its fields, one after the other
//	[N]byte      N bytes
//	[N]T         N elements
//	[]T          for each element 01 and the element, then 00
//	map[K]V      for each entry 01, the key and the value, in the order of these bytes, then 00
//	*T           00 for nil, else 01 and the element
//	time.Time    Unix seconds as int64, nanoseconds as uint32
//	descending   the encoding with all bits inverted
//
// Memory is read and written through pointers with offsets that package reflect has given.
// These pointers are only used in layout*.go.
type layout struct {
	parts  []part
	object bool // JSON has its parts in an object
	size   int  // of every encoding; -1: it varies
	form   string
	// equal says that Go's == and the equality of encodings are the same, which the keys of
	// a map need.
	equal bool
}

// part is a value at an offset.
type part struct {
	kind   partKind
	offset uintptr
	size   int          // bytes of the encoding of a scalar
	n      int          // bytes of a partRaw, elements of an array
	t      reflect.Type // in memory
	elem   *layout      // of what it contains
	stride uintptr      // between elements of a slice or array
	key    *layout      // of a map
	fields *Fields      // of a partFields
	maps   *mapScratch  // of a map
	member *member      // of a struct
}

// member is a part of a struct. It is not in the part itself, so that encoding reads less memory.
type member struct {
	name          string // of the field and, before it with dots, of the structs around it
	before, after string // what JSON has around the value
}

// partKind is a kind of package reflect if it is scalar.
type partKind uint8

const (
	partBool    = partKind(reflect.Bool)
	partInt     = partKind(reflect.Int)
	partInt8    = partKind(reflect.Int8)
	partInt16   = partKind(reflect.Int16)
	partInt32   = partKind(reflect.Int32)
	partInt64   = partKind(reflect.Int64)
	partUint    = partKind(reflect.Uint)
	partUint8   = partKind(reflect.Uint8)
	partUint16  = partKind(reflect.Uint16)
	partUint32  = partKind(reflect.Uint32)
	partUint64  = partKind(reflect.Uint64)
	partFloat32 = partKind(reflect.Float32)
	partFloat64 = partKind(reflect.Float64)
	partArray   = partKind(reflect.Array)
	partMap     = partKind(reflect.Map)
	partPointer = partKind(reflect.Pointer)
	partSlice   = partKind(reflect.Slice)
	partString  = partKind(reflect.String)
	partBytes   = partKind(reflect.UnsafePointer) + 1 + iota // []byte
	partRaw                                                  // [N]byte
	partTime
	partFields // a struct with a method Fields
	partDesc
)

// scalarSizes are the sizes of encodings. int and uint are written as int64 and uint64.
var scalarSizes = map[reflect.Kind]int{
	reflect.Bool: 1, reflect.Int8: 1, reflect.Uint8: 1, reflect.Int16: 2, reflect.Uint16: 2,
	reflect.Int32: 4, reflect.Uint32: 4, reflect.Float32: 4,
	reflect.Int: 8, reflect.Uint: 8, reflect.Int64: 8, reflect.Uint64: 8, reflect.Float64: 8,
}

// maxParts bounds the parts of a type: pointers to structs of pointers make them many.
const maxParts = 10_000

// layoutBuilder makes the layout of a type.
type layoutBuilder struct {
	inside  []reflect.Type // the types around the current one
	parts   int
	noOrder error // why values have no order; nil: they have one
	keeps   bool  // encoding a value keeps its address: in a map's iterator, or in a method Fields
}

// build returns the layout of a type at a path.
func (b *layoutBuilder) build(t reflect.Type, path string) (*layout, error) {
	l := &layout{equal: true}
	var forms []string
	if err := b.add(l, &forms, t, part{}, path); err != nil {
		return nil, err
	}
	l.form = strings.Join(forms, ",")
	l.object = t.Kind() == reflect.Struct && (len(l.parts) != 1 || l.parts[0].t != t)
	if l.object {
		l.setBrackets()
	}
	return l, nil
}

// setBrackets sets what JSON has around the parts. Structs in the struct are objects again.
func (l *layout) setBrackets() {
	var around []string // the structs around the part before
	for i := range l.parts {
		names := strings.Split(l.parts[i].member.name, ".")
		outer, same := names[:len(names)-1], 0
		for same < min(len(outer), len(around)) && outer[same] == around[same] {
			same++
		}
		var before []byte
		if i > 0 {
			l.parts[i-1].member.after = strings.Repeat("}", len(around)-same)
			before = append(before, ',')
		}
		for _, name := range outer[same:] {
			before = append(appendQuoted(before, name), ":{"...)
		}
		l.parts[i].member.before = string(append(appendQuoted(before, names[len(outer)]), ':'))
		around = outer
	}
	if n := len(l.parts); n > 0 {
		l.parts[n-1].member.after = strings.Repeat("}", len(around))
	}
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	fielderType = reflect.TypeFor[fielder]()
)

// add appends the parts of a type to a layout. at has the offset and the member.
func (b *layoutBuilder) add(l *layout, forms *[]string, t reflect.Type, at part, path string) error {
	if b.parts++; b.parts > maxParts {
		return fmt.Errorf("%s: the type has more than %d parts", path, maxParts)
	}
	at.kind, at.t = partKind(t.Kind()), t
	size, form := -1, t.Kind().String()
	var err error
	switch kind := t.Kind(); {
	case slices.Contains(b.inside, t):
		return fmt.Errorf("%s: %s contains itself, and such a type has no encoding: refer to other values by a key", path, t)
	case reflect.PointerTo(t).Implements(fielderType):
		form, err = b.fields(l, &at, path)
	case t == timeType:
		at.kind, size, form, l.equal = partTime, timeSize, "time", false
	case scalarSizes[kind] > 0:
		size = scalarSizes[kind]
		at.size = size
	case kind == reflect.String:
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		at.kind, form = partBytes, "[]uint8"
	case kind == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		at.kind, at.n, size, form = partRaw, t.Len(), t.Len(), fmt.Sprintf("[%d]uint8", t.Len())
	default:
		b.inside = append(b.inside, t)
		defer func() { b.inside = b.inside[:len(b.inside)-1] }()
		if kind == reflect.Struct && !isDesc(t) {
			return b.fieldsOf(l, forms, t, at, path)
		}
		size, form, err = b.contain(l, &at, path)
	}
	if err != nil {
		return err
	}
	*forms = append(*forms, form)
	l.append(at, size)
	return nil
}

// append adds a part with encodings of a size.
func (l *layout) append(p part, size int) {
	l.parts = append(l.parts, p)
	if l.size >= 0 && size >= 0 {
		l.size += size
	} else {
		l.size = -1
	}
}

func isDesc(t reflect.Type) bool {
	own := reflect.TypeFor[Desc[int]]()
	return t.PkgPath() == own.PkgPath() && strings.HasPrefix(t.Name(), "Desc[")
}

// fields makes the part of a type with a method Fields.
func (b *layoutBuilder) fields(l *layout, p *part, path string) (form string, err error) {
	v := reflect.New(p.t)
	f, _, err := examineFields(v.Interface().(fielder), v.UnsafePointer(), p.t, b.inside)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	b.disorder(path, f.noOrder)
	b.keeps = true
	p.kind, p.fields, l.equal = partFields, new(Fields), false
	return f.form(), nil
}

func (b *layoutBuilder) disorder(path string, err error) {
	if b.noOrder == nil && err != nil {
		b.noOrder = fmt.Errorf("%s: %v", path, err) // one error: distinctErrors compares causes
	}
}

// contain makes a part that contains values of other types.
func (b *layoutBuilder) contain(l *layout, p *part, path string) (size int, form string, err error) {
	size = -1
	inner := func(t reflect.Type, path string) *layout {
		if err != nil {
			return nil
		}
		var of *layout
		if of, err = b.build(t, path); err != nil {
			return nil
		}
		return of
	}
	switch p.t.Kind() {
	case reflect.Struct:
		p.kind, p.elem = partDesc, inner(p.t.Field(0).Type, path)
	case reflect.Pointer:
		p.elem, l.equal = inner(p.t.Elem(), path), false
	case reflect.Slice:
		p.elem, p.stride = inner(p.t.Elem(), path+"[]"), p.t.Elem().Size()
	case reflect.Array:
		p.n, p.elem, p.stride = p.t.Len(), inner(p.t.Elem(), path+"[]"), p.t.Elem().Size()
	case reflect.Map:
		if p.key = inner(p.t.Key(), path+"[key]"); err == nil && !p.key.equal {
			return 0, "", fmt.Errorf("%s[key]: %s cannot be in the key of a map, because different keys would have one encoding: use plain values", path, p.t.Key())
		}
		b.disorder(path, errMapOrder)
		b.keeps = true
		p.elem, p.maps = inner(p.t.Elem(), path+"[]"), newMapScratch(p.t)
	default:
		err = fmt.Errorf("%s: %s has no encoding", path, kindName(p.t))
	}
	if err != nil {
		return 0, "", err
	}
	switch p.kind {
	case partDesc:
		return p.elem.size, p.elem.descForm(), nil
	case partArray:
		if p.elem.size >= 0 {
			size = p.n * p.elem.size
		}
		l.equal = l.equal && p.elem.equal
		return size, fmt.Sprintf("array(%d,%s)", p.n, p.elem.form), nil
	case partMap:
		return size, "map(" + p.key.form + ";" + p.elem.form + ")", nil
	}
	return size, p.t.Kind().String() + "(" + p.elem.form + ")", nil
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Interface:
		return "an interface, which does not tell the type of its values,"
	case reflect.Func:
		return "a function"
	case reflect.Chan:
		return "a channel"
	}
	return "type " + t.String()
}

// fieldsOf adds the fields of a struct. The tag mapreduce:"-" leaves a field out, and
// mapreduce:"desc" sorts it from high to low.
func (b *layoutBuilder) fieldsOf(l *layout, forms *[]string, t reflect.Type, at part, path string) error {
	before := b.parts
	for i := range t.NumField() {
		field := t.Field(i)
		tag, tagged := field.Tag.Lookup("mapreduce")
		name := field.Name
		if at.member != nil {
			name = at.member.name + "." + name
		}
		part := part{offset: at.offset + field.Offset, member: &member{name: name}}
		path := path + "." + field.Name
		var err error
		switch {
		case tag == "-" || field.Name == "_":
			l.equal = false
		case tagged && tag != "desc":
			err = fmt.Errorf("%s: tag mapreduce:%s is unknown: only %q and %q have a meaning", path, strconv.Quote(tag), "-", "desc")
		case !field.IsExported() && (!field.Anonymous || field.Type.Kind() != reflect.Struct):
			err = fmt.Errorf("%s: a field that is not exported has no encoding: export it, leave it out with the tag `mapreduce:\"-\"`, or give *%s a method Fields(*mapreduce.Fields)", path, t)
		case tagged:
			err = b.descending(l, forms, field.Type, part, path)
		default:
			err = b.add(l, forms, field.Type, part, path)
		}
		if err != nil {
			return err
		}
	}
	if b.parts == before && t.NumField() > 0 {
		return fmt.Errorf("%s: no field of %s is encoded", path, t)
	}
	return nil
}

func (b *layoutBuilder) descending(l *layout, forms *[]string, t reflect.Type, p part, path string) error {
	elem, err := b.build(t, path)
	if err != nil {
		return err
	}
	p.kind, p.t, p.elem = partDesc, t, elem
	l.append(p, elem.size)
	l.equal = l.equal && elem.equal
	*forms = append(*forms, elem.descForm())
	return nil
}

func (l *layout) descForm() string {
	if len(l.parts) == 1 {
		return "desc " + l.form
	}
	return "desc(" + l.form + ")"
}

// layoutOf returns the layout of a type, and why it has no order, or nil.
func layoutOf(t reflect.Type) (l *layout, noOrder, err error) {
	b := &layoutBuilder{}
	l, err = b.build(t, rootOf(t))
	return l, b.noOrder, err
}

// rootOf is where the paths of a type's parts begin: its name, or, as in (map[string]any)[], all of it.
func rootOf(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	text := strings.ReplaceAll(t.String(), "interface {}", "any")
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return "(" + text + ")"
	}
	return text
}

// unescaped hides from the compiler that a pointer is used, so that what it refers to stays on
// the stack. The pointer must not be kept.
func unescaped(p unsafe.Pointer) unsafe.Pointer {
	hidden := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&hidden))
}

// layoutCodec returns the codec of a type by its layout. Where a value could be kept, it is
// copied to one variable, so that records cost no allocation.
func layoutCodec[T any]() (*codec[T], error) {
	t := reflect.TypeFor[T]()
	b := &layoutBuilder{}
	l, err := b.build(t, rootOf(t))
	if err != nil {
		return nil, err
	}
	value := new(T)
	at := unsafe.Pointer(value)
	put := func(dst []byte, v T) []byte {
		if !b.keeps {
			return l.put(dst, unescaped(unsafe.Pointer(&v)))
		}
		*value = v
		return l.put(dst, at)
	}
	get := func(d *decoder, src []byte) (T, []byte) {
		var zero T
		*value = zero
		rest := l.get(d, src, at)
		return *value, rest
	}
	c := &codec[T]{name: t.String(), form: l.form, noOrder: b.noOrder, append: put, appendNested: put, decodeNested: get}
	if l.object {
		c.name, c.form = c.name+"{"+l.form+"}", "fields{"+l.form+"}"
	}
	c.decode = func(d *decoder, src []byte) T {
		var zero T
		*value = zero
		if rest := l.get(d, src, at); len(rest) > 0 {
			d.fail(errTrailing)
		}
		return *value
	}
	var buf []byte
	c.hash = func(v T) int32 {
		*value = v
		return l.hash(&buf, at)
	}
	c.text = func(dst []byte, v T) []byte {
		*value = v
		return l.text(dst, at)
	}
	return c, nil
}
