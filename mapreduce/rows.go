package mapreduce

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSONLines reads files with one JSON value per line into R, as json.Unmarshal does: tags json:"name" give the names
// of fields, and other fields of the file are ignored. Blank lines are skipped. A line that cannot be read
// fails the job, unless it skips bad records. The error names file, offset and line. Splits, compressed files and paths are
// as for [Lines].
func JSONLines[R any](paths ...string) Input[R] {
	spec := &inputSpec{format: "jsonlines", paths: paths}
	switch t := reflect.TypeFor[R](); t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		spec.err = fmt.Errorf("input of JSON lines: a line cannot be read as a %v", t)
	default:
		if err := checkPointers(t, t.String(), nil); err != nil {
			spec.err = fmt.Errorf("input of JSON lines: %w", err)
		}
	}
	return Input[R]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[R] {
			return func(yield func(R) bool) {
				for line := range in.Lines() {
					text := bytesOf(line) // package json does not change it
					if len(bytes.TrimSpace(text)) == 0 {
						continue
					}
					var rec R
					if err := json.Unmarshal(text, &rec); err != nil {
						t.fail(errorAt(in, t.badRecord(nameField[R](text, err))))
						return
					}
					if !yield(rec) {
						return
					}
				}
			}
		},
	}
}

// nameField adds the name of the field to an error of a field's own method, such as UnmarshalJSON of time.Time: package
// json does not. It finds the field that has the error alone.
func nameField[R any](line []byte, err error) error {
	var fields map[string]json.RawMessage
	_, named := errors.AsType[*json.UnmarshalTypeError](err)
	if _, own := any(new(R)).(json.Unmarshaler); own || named || json.Unmarshal(line, &fields) != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		alone, _ := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if again := json.Unmarshal(alone, new(R)); again != nil && again.Error() == err.Error() {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return err
}

// onlyPointers reports whether a type refers to nothing but pointers, as type P *P does.
func onlyPointers(t reflect.Type) bool {
	var seen []reflect.Type
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if slices.Contains(seen, t) {
			return true
		}
		seen = append(seen, t)
	}
	return false
}

// checkPointers refuses a type with parts that package json would follow for ever.
func checkPointers(t reflect.Type, path string, above []reflect.Type) error {
	switch {
	case onlyPointers(t):
		return fmt.Errorf("%s: %v refers to pointers without an end", path, t)
	case slices.Contains(above, t):
		return nil
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Pointer:
		return checkPointers(t.Elem(), path, above)
	case reflect.Slice, reflect.Array, reflect.Map:
		return checkPointers(t.Elem(), path+"[]", above)
	case reflect.Struct:
		for i := range t.NumField() {
			if err := checkPointers(t.Field(i).Type, path+"."+t.Field(i).Name, above); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowPlan is how the fields of a row become a struct. It is made once per type, and read by many rows.
type rowPlan struct {
	columns []rowColumn // nil: the type is []string
}

// rowColumn is one field of a struct.
type rowColumn struct {
	name  string
	index []int // as of reflect's FieldByIndex
	set   func(field reflect.Value, text string) error
}

func (c *rowColumn) field(v reflect.Value) reflect.Value {
	if len(c.index) == 1 {
		return v.Field(c.index[0])
	}
	return v.FieldByIndex(c.index)
}

func rowPlanOf(t reflect.Type) (*rowPlan, error) {
	if t == reflect.TypeFor[[]string]() {
		return &rowPlan{}, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a row is read as a struct or []string, but not as %v", t)
	}
	p := &rowPlan{columns: []rowColumn{}}
	if err := p.add(t, nil); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, c := range p.columns {
		if seen[c.name] {
			return nil, fmt.Errorf("two fields of %v have the column %q", t, c.name)
		}
		seen[c.name] = true
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("%v has no fields for columns", t)
	}
	return p, nil
}

// add adds the fields of a struct, with those of embedded structs.
func (p *rowPlan) add(t reflect.Type, above []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, tagged := f.Tag.Lookup("csv")
		index := append(append([]int{}, above...), i)
		switch {
		case name == "-":
			continue
		case strings.Contains(name, ","):
			return fmt.Errorf("field %v.%s: the tag csv:%q has an option; want a name", t, f.Name, name)
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !tagged:
			if err := p.add(f.Type, index); err != nil {
				return err
			}
			continue
		case !f.IsExported():
			return fmt.Errorf(`field %v.%s cannot be set; export it, or tag it csv:"-"`, t, f.Name)
		}
		set, err := setterOf(f.Type)
		if err != nil {
			return fmt.Errorf("field %v.%s: %w", t, f.Name, err)
		}
		if name == "" {
			name = f.Name
		}
		p.columns = append(p.columns, rowColumn{name: name, index: index, set: set})
	}
	return nil
}

// setterOf returns a function that sets a field of a type from text.
func setterOf(t reflect.Type) (func(reflect.Value, string) error, error) {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return func(v reflect.Value, text string) error {
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		}, nil
	}
	bits := 0
	if k := t.Kind(); k >= reflect.Int && k <= reflect.Float64 {
		bits = t.Bits()
	}
	switch t.Kind() {
	case reflect.Pointer:
		if onlyPointers(t) {
			break
		}
		set, err := setterOf(t.Elem())
		return func(v reflect.Value, text string) error {
			if text == "" {
				return nil
			}
			v.Set(reflect.New(t.Elem()))
			return set(v.Elem(), text)
		}, err
	case reflect.String:
		return func(v reflect.Value, text string) error { v.SetString(text); return nil }, nil
	case reflect.Bool:
		return setterBy(t, strconv.ParseBool, reflect.Value.SetBool), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return setterBy(t, func(s string) (int64, error) { return strconv.ParseInt(s, 10, bits) }, reflect.Value.SetInt), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return setterBy(t, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, bits) }, reflect.Value.SetUint), nil
	case reflect.Float32, reflect.Float64:
		return setterBy(t, func(s string) (float64, error) { return strconv.ParseFloat(s, bits) }, reflect.Value.SetFloat), nil
	}
	return nil, fmt.Errorf("a column cannot be a %v; use a string, a boolean, a number, a type with UnmarshalText, or a pointer to one", t)
}

func setterBy[T any](t reflect.Type, parse func(string) (T, error), set func(reflect.Value, T)) func(reflect.Value, string) error {
	return func(v reflect.Value, text string) error {
		parsed, err := parse(text)
		if err != nil {
			if e, ok := errors.AsType[*strconv.NumError](err); ok {
				err = e.Err
			}
			return fmt.Errorf("%q as %v: %w", text, t, err)
		}
		set(v, parsed)
		return nil
	}
}
