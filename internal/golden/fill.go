package golden

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"
)

// filler sets each field to a value that it derives from the field's path of encoded names.
// So adding or renaming a field changes no other field's value.
type filler struct {
	form    Form
	omitted []string // paths of fields with omitempty
}

func (f *filler) fill(v reflect.Value, path string) error {
	n := number(path)
	switch v.Kind() {
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			v.Set(reflect.ValueOf(time.UnixMilli(n * 1e6).UTC()))
			return nil
		}
		return f.fields(v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return f.fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return f.fill(v.Index(0), path+"[0]")
	case reflect.Array:
		for i := range v.Len() {
			if err := f.fill(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString(fmt.Sprint("k", n))
		v.Set(reflect.MakeMap(v.Type()))
		err := f.fill(value, path+"."+key.String())
		v.SetMapIndex(key, value)
		return err
	case reflect.String:
		v.SetString(fmt.Sprint("s", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8:
		v.SetInt(n % 100)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint8:
		v.SetUint(uint64(n % 100))
	case reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	default:
		return fmt.Errorf("%s: filler does not support the type %v yet", path, v.Type())
	}
	return nil
}

func (f *filler) fields(v reflect.Value, path string) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get(string(f.form)), ",")
		switch {
		case f.form == ByPosition:
			name = fmt.Sprint(i)
		case name == "-":
			continue
		case !field.IsExported() || field.Anonymous:
			return fmt.Errorf("%v.%s: only exported fields with a name are encoded", v.Type(), field.Name)
		case name == "":
			return fmt.Errorf("%v.%s needs a tag `%s:\"%s\"`: else its bytes change when it is renamed", v.Type(), field.Name, f.form, field.Name)
		}
		name = strings.TrimPrefix(path+"."+name, ".")
		if options != "" {
			f.omitted = append(f.omitted, name)
		}
		if err := f.fill(v.Field(i), name); err != nil {
			return err
		}
	}
	return nil
}

// number derives a number from 1001 to 9999 from the path. It is not a multiple of 100.
func number(path string) int64 {
	h := fnv.New32a()
	h.Write([]byte(path)) // never fails
	n := int64(h.Sum32())
	return (10+n%90)*100 + 1 + n/90%99
}
