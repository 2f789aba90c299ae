package mapreduce

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// span is a piece of memory.
type span struct{ at, size uintptr }

func (s span) holds(other span) bool { return s.at <= other.at && other.at+other.size <= s.at+s.size }

// examineFields runs a type's method Fields on the zero value, to learn what it
// lists and whether that is every field.
func examineFields(visit fielder, at unsafe.Pointer, t reflect.Type) (name string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("method Fields of %s panics on the zero value: %v", t, r)
		}
	}()
	f := &Fields{task: fieldsExamine, value: span{uintptr(at), t.Size()}, listed: make(map[span]bool)}
	visit.Fields(f)
	missing := f.missing(t, f.value.at, "")
	switch {
	case f.err != nil:
		return "", fmt.Errorf("method Fields of %s: %w", t, f.err)
	case f.n == 0:
		return "", fmt.Errorf("method Fields of %s lists no field", t)
	case f.desc:
		return "", fmt.Errorf("method Fields of %s calls Desc after the last field", t)
	case len(missing) > 0:
		return "", fmt.Errorf("method Fields of %s leaves out %s: %slist every field, or name one that is not to travel by f.Skip(&x.%s)",
			t, strings.Join(missing, ", "), f.promoted(t), missing[0])
	}
	return t.String() + "{" + strings.Join(f.names, ",") + "}", nil
}

// list is what listing a field does while the method is examined.
func (f *Fields) list(field span, kind string, desc bool) {
	if desc {
		kind = "desc " + kind
	}
	f.names = append(f.names, kind)
	if !f.value.holds(field) {
		f.err = fmt.Errorf("field %d (%s) lies outside the value: Fields must have a pointer receiver and list the receiver's own fields", f.n, kind)
	}
	f.listed[field] = true
}

// skip is what Skip does then.
func (f *Fields) skip(p any) {
	v := reflect.ValueOf(p)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
		f.err = fmt.Errorf("Skip wants a pointer to a field, got %T", p)
		return
	case f.desc:
		f.err = fmt.Errorf("Desc stands before Skip(%T)", p)
	}
	field := span{v.Pointer(), v.Type().Elem().Size()}
	if !f.value.holds(field) {
		f.err = fmt.Errorf("what Skip(%T) names lies outside the value: Fields must have a pointer receiver and name the receiver's own fields", p)
	}
	f.skipped = append(f.skipped, field)
}

// missing names what was neither listed nor skipped of a value of type t: fields
// of fields where some of them were, else the whole. Blank fields and those of no
// size hold nothing.
func (f *Fields) missing(t reflect.Type, at uintptr, name string) []string {
	whole := span{at, t.Size()}
	if whole.size == 0 || f.listed[whole] || slices.ContainsFunc(f.skipped, func(s span) bool { return s.holds(whole) }) {
		return nil
	}
	var all []string
	some := false // of its parts are there
	add := func(part reflect.Type, offset uintptr, called string) {
		missing := f.missing(part, at+offset, called)
		some = some || part.Size() > 0 && !slices.Equal(missing, []string{called})
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
	if name != "" && !some && len(all) > 0 {
		return []string{name}
	}
	return all
}

// promoted says whose method it is that visits nothing but an embedded type's fields.
func (f *Fields) promoted(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.Anonymous || !reflect.PointerTo(field.Type).Implements(reflect.TypeFor[fielder]()) {
			continue
		}
		whole, inside := span{f.value.at + field.Offset, field.Type.Size()}, true
		for listed := range f.listed {
			inside = inside && whole.holds(listed)
		}
		if inside {
			return fmt.Sprintf("the method is that of the embedded %s, so give %s its own; ", field.Type, t)
		}
	}
	return ""
}
