package runtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// comparePlans returns an error that shows the first difference between the submitted plan
// and the plan that this process has built. It names the definition of a driver's step.
func comparePlans(submitted *wire.Submission, built *wire.Plan) error {
	field, a, b, differ := difference(reflect.ValueOf(submitted.Plan), reflect.ValueOf(*built))
	if !differ {
		return nil
	}
	if step := submitted.Program.Step; step != nil {
		return Fatal(fmt.Errorf("%w: definition %s depends on more than its parameters and the flags: field %s: submitted %s, here %s",
			ErrPlanDiffers, step.Definition, strings.TrimPrefix(field, "."), a, b))
	}
	return Fatal(fmt.Errorf("%w: field %s: submitted %s, here %s", ErrPlanDiffers, strings.TrimPrefix(field, "."), a, b))
}

// difference finds the first field in which two values of one type differ. An empty slice
// or map equals a nil one: their encodings are equal. It makes texts only of what differs, since
// each attempt compares all fields.
func difference(a, b reflect.Value) (at, inA, inB string, differ bool) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if at, inA, inB, differ = difference(a.Field(i), b.Field(i)); differ {
				return "." + a.Type().Field(i).Name + at, inA, inB, true
			}
		}
		return
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if at, inA, inB, differ = difference(a.Index(i), b.Index(i)); differ {
				return fmt.Sprintf("[%d]%s", i, at), inA, inB, true
			}
		}
		if a.Len() != b.Len() {
			return "", fmt.Sprint(a.Len(), " elements"), fmt.Sprint(b.Len(), " elements"), true
		}
		return
	case reflect.Map:
		return mapDifference(a, b)
	}
	if !a.Equal(b) {
		return "", fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b), true
	}
	return
}

func mapDifference(a, b reflect.Value) (at, inA, inB string, differ bool) {
	keys := append(a.MapKeys(), b.MapKeys()...)
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	for _, key := range keys {
		x, y := a.MapIndex(key), b.MapIndex(key)
		if !x.IsValid() || !y.IsValid() {
			return fmt.Sprintf("[%q]", key.String()), presence(x), presence(y), true
		}
		if at, inA, inB, differ = difference(x, y); differ {
			return fmt.Sprintf("[%q]%s", key.String(), at), inA, inB, true
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
