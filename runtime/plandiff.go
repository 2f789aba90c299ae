package runtime

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/quernmr/quern/wire"
)

// comparePlans returns an error that shows the first difference between the submitted plan
// and the plan that this process has built.
func comparePlans(submitted, built *wire.Plan) error {
	field, a, b, differ := difference("", reflect.ValueOf(*submitted), reflect.ValueOf(*built))
	if !differ {
		return nil
	}
	return Fatal(fmt.Errorf("%w: field %s: submitted %s, here %s", ErrPlanDiffers, field, a, b))
}

// difference finds the first field in which two values of one type differ. An empty slice
// or map equals a nil one: their encodings are equal.
func difference(field string, a, b reflect.Value) (at, inA, inB string, differ bool) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if field != "" {
				name = field + "." + name
			}
			if at, inA, inB, differ = difference(name, a.Field(i), b.Field(i)); differ {
				return
			}
		}
		return
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			name := fmt.Sprintf("%s[%d]", field, i)
			if at, inA, inB, differ = difference(name, a.Index(i), b.Index(i)); differ {
				return
			}
		}
		return field, fmt.Sprint(a.Len(), " elements"), fmt.Sprint(b.Len(), " elements"), a.Len() != b.Len()
	case reflect.Map:
		return mapDifference(field, a, b)
	}
	return field, fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b), !a.Equal(b)
}

func mapDifference(field string, a, b reflect.Value) (at, inA, inB string, differ bool) {
	keys := append(a.MapKeys(), b.MapKeys()...)
	slices.SortFunc(keys, func(x, y reflect.Value) int {
		switch {
		case x.String() < y.String():
			return -1
		case x.String() > y.String():
			return 1
		}
		return 0
	})
	for _, key := range keys {
		name := fmt.Sprintf("%s[%q]", field, key.String())
		x, y := a.MapIndex(key), b.MapIndex(key)
		if !x.IsValid() || !y.IsValid() {
			return name, presence(x), presence(y), true
		}
		if at, inA, inB, differ = difference(name, x, y); differ {
			return
		}
	}
	return
}

func presence(v reflect.Value) string {
	if !v.IsValid() {
		return "absent"
	}
	return fmt.Sprintf("%#v", v)
}
