package mapreduce

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type (
	endless *endless
	ring    []*ring
	knot    struct {
		N    int
		Next *knot
	}
	chain struct {
		N    int
		Rest []link
	}
	link  struct{ To *chain }
	shelf map[string]shelf
)

func (k *knot) Fields(f *Fields)  { f.Int(&k.N); f.Value(&k.Next) }
func (c *chain) Fields(f *Fields) { f.Int(&c.N); f.Value(&c.Rest) }

// TestEndlessTypes: wherever a type contains itself within another one, the type is refused by
// the path of that part, also where a method Fields lists it.
func TestEndlessTypes(t *testing.T) {
	endlessTypes := map[reflect.Type]string{
		reflect.TypeFor[endless](): "", reflect.TypeFor[forest](): "[]", reflect.TypeFor[ring](): "[]",
		reflect.TypeFor[tree](): ".Left", reflect.TypeFor[shelf](): "[]",
		reflect.TypeFor[knot]():  ": method Fields of mapreduce.knot: knot.Next",
		reflect.TypeFor[chain](): ": method Fields of mapreduce.chain: chain.Rest[].To",
	}
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.SampledFrom(slices.SortedFunc(maps.Keys(endlessTypes), func(a, b reflect.Type) int { return cmp.Compare(a.Name(), b.Name()) })).Draw(t, "type")
		typ, path := inner, ""
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			switch rapid.IntRange(0, 4).Draw(t, "around") {
			case 0:
				typ, path = reflect.SliceOf(typ), "[]"+path
			case 1:
				typ, path = reflect.ArrayOf(2, typ), "[]"+path
			case 2:
				typ = reflect.PointerTo(typ)
			case 3:
				typ, path = reflect.MapOf(reflect.TypeFor[string](), typ), "[]"+path
			case 4:
				typ, path = reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int]()}, {Name: "B", Type: typ}}), ".B"+path
			}
		}
		_, _, err := layoutOf(typ)
		if want := rootOf(typ) + path + endlessTypes[inner] + ": "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), inner.String()+" contains itself") {
			t.Fatalf("error %v, want %q", err, want)
		}
	})
	b := &jobRunner{files: map[string]string{"in": "a\n"}}
	checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(endless, *knot)) error { return nil })).Job("j"), b,
		"key", "endless: mapreduce.endless contains itself", "value", "knot.Next: *mapreduce.knot contains itself")
	wants := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	_, err := rowPlanOf(reflect.TypeFor[struct{ A, B **endless }]())
	wants(err, ".A: a column cannot be a **mapreduce.endless")
	wants(JSONLines[map[string][]struct{ P endless }]().spec.err, "[][].P: mapreduce.endless refers to pointers without an end")
	if err := JSONLines[tree]().spec.err; err != nil {
		t.Error(err)
	}
	wants(checkParams(reflect.TypeFor[struct{ A []endless }]()), "params.A has the type mapreduce.endless")
}
