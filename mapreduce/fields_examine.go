package mapreduce

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// span is a range of memory.
type span struct{ at, size uintptr }

func (s span) contains(other span) bool {
	return s.at <= other.at && other.at+other.size <= s.at+s.size
}

// listedField is a field that a method Fields lists.
type listedField struct {
	span
	t reflect.Type
}

// examineFields calls a type's method Fields on the zero value, to check that it lists
// every field. inside has the types around it.
func examineFields(visit fielder, at unsafe.Pointer, t reflect.Type, inside []reflect.Type) (f *Fields, name string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("method Fields of %s panics on the zero value: %v", t, r)
		}
	}()
	f = examine(visit, at, t, inside)
	missing := f.missing(t, f.value.at, "")
	switch {
	case f.err != nil:
		return nil, "", fmt.Errorf("method Fields of %s: %w", t, f.err)
	case f.n == 0:
		return nil, "", fmt.Errorf("method Fields of %s lists no field", t)
	case f.desc:
		return nil, "", fmt.Errorf("method Fields of %s calls Desc after the last field", t)
	case len(missing) > 0:
		return nil, "", fmt.Errorf("method Fields of %s leaves out %s: %slist every field, or exclude one from the encoding with f.Skip(&x.%s)",
			t, strings.Join(missing, ", "), f.embeddedHint(t), missing[0])
	}
	return f, t.String() + "{" + strings.Join(f.names, ",") + "}", nil
}

func examine(visit fielder, at unsafe.Pointer, t reflect.Type, inside []reflect.Type) *Fields {
	f := &Fields{mode: fieldsExamine, value: span{uintptr(at), t.Size()}, inside: append(slices.Clip(inside), t)}
	visit.Fields(f)
	return f
}

// failed notes which field of a value does not decode. The fields before it are decoded, so that the method lists the
// same ones again.
func (f *Fields) failed(visit fielder, at unsafe.Pointer, t reflect.Type) {
	again := examine(visit, at, t, nil)
	n := f.n - f.d.after
	if f.d.after = 0; 0 < n && n <= len(again.listed) {
		field := again.listed[n-1]
		f.d.inside(strings.TrimPrefix(again.nameOf(field.span, field.t), rootOf(t)))
	}
}

// form is the encoding of the listed fields.
func (f *Fields) form() string { return "fields{" + strings.Join(f.names, ",") + "}" }

// list records a listed field while the method is examined.
func (f *Fields) list(field span, t reflect.Type, kind string, desc bool) {
	if desc {
		kind = "desc " + kind
	}
	f.names = append(f.names, kind)
	if !f.value.contains(field) {
		f.err = fmt.Errorf("field %d (%s) is outside the value: Fields must have a pointer receiver and list the receiver's own fields", f.n, kind)
	}
	f.listed = append(f.listed, listedField{field, t})
}

// listValue records a field of [Fields.Value] while the method is examined.
func (f *Fields) listValue(p any, desc bool) {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		f.err = fmt.Errorf("Value needs a pointer to a field, got %T", p)
		return
	}
	field := span{v.Pointer(), v.Type().Elem().Size()}
	b := &layoutBuilder{inside: f.inside}
	l, err := b.build(v.Type().Elem(), f.nameOf(field, v.Type().Elem()))
	if err != nil {
		f.err = err
		return
	}
	if f.noOrder == nil {
		f.noOrder = b.noOrder
	}
	f.list(field, v.Type().Elem(), l.form, desc)
}

// nameOf returns the path of a field of a type, for messages.
func (f *Fields) nameOf(field span, t reflect.Type) string {
	in, at := f.inside[len(f.inside)-1], f.value.at
	path := rootOf(in)
	for found := true; found && in != t && in.Kind() == reflect.Struct; {
		found = false
		for i := range in.NumField() {
			part := in.Field(i)
			if found = (span{at + part.Offset, part.Type.Size()}).contains(field); found {
				path, at, in = path+"."+part.Name, at+part.Offset, part.Type
				break
			}
		}
	}
	return path
}

// skip records a skipped field while the method is examined.
func (f *Fields) skip(p any) {
	v := reflect.ValueOf(p)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
		f.err = fmt.Errorf("Skip needs a pointer to a field, got %T", p)
		return
	case f.desc:
		f.err = fmt.Errorf("Desc is called before Skip(%T)", p)
	}
	field := span{v.Pointer(), v.Type().Elem().Size()}
	if !f.value.contains(field) {
		f.err = fmt.Errorf("the field of Skip(%T) is outside the value: Fields must have a pointer receiver and name the receiver's own fields", p)
	}
	f.skipped = append(f.skipped, field)
}

// missing returns the names of fields that are neither listed nor skipped in a value of
// type t. If all parts of a struct or array are missing, it returns only the whole. Blank
// fields and fields without size need not be listed.
func (f *Fields) missing(t reflect.Type, at uintptr, name string) []string {
	whole := span{at, t.Size()}
	if whole.size == 0 || slices.ContainsFunc(f.listed, func(l listedField) bool { return l.span == whole }) || slices.ContainsFunc(f.skipped, func(s span) bool { return s.contains(whole) }) {
		return nil
	}
	var all []string
	anyNamed := false // some part is listed or skipped
	add := func(part reflect.Type, offset uintptr, called string) {
		missing := f.missing(part, at+offset, called)
		anyNamed = anyNamed || part.Size() > 0 && !slices.Equal(missing, []string{called})
		all = append(all, missing...)
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.Name != "_" {
				add(field.Type, field.Offset, strings.TrimPrefix(name+"."+field.Name, "."))
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			add(t.Elem(), uintptr(i)*t.Elem().Size(), fmt.Sprintf("%s[%d]", name, i))
		}
	default:
		return []string{name}
	}
	if name != "" && !anyNamed && len(all) > 0 {
		return []string{name}
	}
	return all
}

// embeddedHint explains a method Fields that t only inherits from an embedded type.
func (f *Fields) embeddedHint(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.Anonymous || !reflect.PointerTo(field.Type).Implements(reflect.TypeFor[fielder]()) {
			continue
		}
		whole, inside := span{f.value.at + field.Offset, field.Type.Size()}, true
		for _, l := range f.listed {
			inside = inside && whole.contains(l.span)
		}
		if inside {
			return fmt.Sprintf("the method belongs to the embedded %s, so give %s its own; ", field.Type, t)
		}
	}
	return ""
}
