package mapreduce

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

type (
	fieldsBase struct{ User string }

	promotes struct {
		fieldsBase
		Extra int64
	}
	promotesAll struct {
		fieldsBase
		_ [3]int32
	}
	delegates struct {
		fieldsBase
		Extra int64
	}
	forgets struct {
		User         string
		page, unseen []byte
	}
	forgetsInside struct {
		User  string
		Inner struct{ A, B, C int64 }
		Hash  [3]uint8
	}
	forgetsWhole struct {
		User string
		When time.Time
		Hash [3]uint8
		Tags map[string]int
	}
	listsAll struct {
		User  string
		Inner struct{ A, B int64 }
		Hash  [3]uint8
		None  struct{}
		_     int32
		Named small
	}
	skips struct {
		User  string
		cache map[string]int
		When  time.Time
		N     int64
	}
	sometimes struct {
		Kind int64
		Text string
	}
	variant struct {
		Kind int64
		Text string
	}
	skipsValue   struct{ N, M int64 }
	skipsOutside struct{ N, M int64 }
	descSkip     struct{ N, M int64 }
)

var _ = forgets{}.unseen // only reflection uses it otherwise

var skippedElsewhere int64

func (v *fieldsBase) Fields(f *Fields) { f.String(&v.User) }
func (v *delegates) Fields(f *Fields)  { v.fieldsBase.Fields(f); f.Int64(&v.Extra) }
func (v *forgets) Fields(f *Fields)    { f.String(&v.User); f.Bytes(&v.page) }
func (v *forgetsInside) Fields(f *Fields) {
	f.String(&v.User)
	f.Int64(&v.Inner.C)
	f.Uint8(&v.Hash[0])
	f.Uint8(&v.Hash[2])
}
func (v *forgetsWhole) Fields(f *Fields) { f.String(&v.User) }
func (v *listsAll) Fields(f *Fields) {
	f.Int64(&v.Inner.B)
	f.Int64(&v.Inner.A)
	f.String(&v.User)
	for i := range v.Hash {
		f.Uint8(&v.Hash[i])
	}
	f.Int16((*int16)(&v.Named))
}
func (v *skips) Fields(f *Fields) {
	f.Skip(&v.cache)
	f.String(&v.User)
	f.Skip(&v.When)
	f.Desc().Int64(&v.N)
}
func (v *sometimes) Fields(f *Fields) {
	f.Int64(&v.Kind)
	if v.Kind > 0 {
		f.String(&v.Text)
	}
}
func (v *variant) Fields(f *Fields) {
	f.Int64(&v.Kind)
	if v.Kind > 0 {
		f.String(&v.Text)
	}
	f.Skip(&v.Text)
}
func (v *skipsValue) Fields(f *Fields)   { f.Int64(&v.N); f.Skip(v.M) }
func (v *skipsOutside) Fields(f *Fields) { f.Int64(&v.N); f.Skip(&skippedElsewhere) }
func (v *descSkip) Fields(f *Fields)     { f.Desc().Skip(&v.N); f.Int64(&v.M) }

// checkRefused checks that jobs with maps that emit T are refused: as key, as value,
// within a pair.
func checkRefused[T any](t *testing.T, name string, words ...string) {
	t.Run(name, func(t *testing.T) {
		b := &jobRunner{files: map[string]string{"in": "a\n"}}
		words = append(words, "job j")
		checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(T, int64)) error { return nil })).Job("j"), b, append(words, "key")...)
		checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(string, Pair[int64, Desc[T]])) error { return nil })).Job("j"), b, append(words, "value")...)
		checkError(t, MapOnly(Map(Lines(), func(_ *Task, _ string, emit func(string, T)) error { return nil })).Job("j"), b, words...)
	})
}

// TestFieldsLeftOut: a type is refused when the job is built if its method Fields does
// not list every field. The error names type and field.
func TestFieldsLeftOut(t *testing.T) {
	checkRefused[promotes](t, "promoted", "mapreduce.promotes leaves out Extra:", "embedded mapreduce.fieldsBase", "f.Skip(&x.Extra)")
	checkRefused[forgets](t, "unexported", "mapreduce.forgets leaves out unseen:")
	checkRefused[forgetsInside](t, "inside", "mapreduce.forgetsInside leaves out Inner.A, Inner.B, Hash[1]:")
	checkRefused[forgetsWhole](t, "whole", "mapreduce.forgetsWhole leaves out When, Hash, Tags:")
	checkRefused[sometimes](t, "sometimes", "mapreduce.sometimes leaves out Text:")
	checkRefused[skipsValue](t, "skip of a value", "pointer to a field, got int64")
	checkRefused[skipsOutside](t, "skip of another's", "Skip(*int64) is outside the value")
	checkRefused[descSkip](t, "desc before skip", "Desc is called before Skip")
}

// TestFieldsSkipped: listed fields are encoded and skipped ones are not. Blank fields and
// fields without size need not be named.
func TestFieldsSkipped(t *testing.T) {
	if _, err := derive[promotesAll](); err != nil {
		t.Error(err)
	}
	if c, err := derive[delegates](); err != nil || c.name != "mapreduce.delegates{string,int64}" {
		t.Errorf("%+v: %v", c, err)
	}
	all, err := derive[listsAll]()
	if err != nil {
		t.Fatal(err)
	}
	v := listsAll{User: "u", Hash: [3]uint8{1, 2, 3}, Named: 4}
	v.Inner.A = 5
	if got, err := read(all, &decoder{}, all.append(nil, v)); err != nil || got != v {
		t.Errorf("%+v came back as %+v: %v", v, got, err)
	}
	c, err := derive[skips]()
	if err != nil {
		t.Fatal(err)
	}
	full := skips{User: "u", cache: map[string]int{"a": 1}, When: time.Unix(1, 0), N: 7}
	bare := skips{User: "u", N: 7}
	if !bytes.Equal(c.append(nil, full), c.append(nil, bare)) || c.hash(full) != c.hash(bare) {
		t.Error("skipped fields are encoded")
	}
	got, err := read(c, &decoder{}, c.append(nil, full))
	if err != nil || got.cache != nil || !got.When.IsZero() || got.User != "u" || got.N != 7 {
		t.Errorf("%+v: %v", got, err)
	}
	variants, err := derive[variant]()
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[variant]variant{{1, "a"}: {1, "a"}, {0, "a"}: {}} {
		if got, err := read(variants, &decoder{}, variants.append(nil, v)); err != nil || got != want {
			t.Errorf("%+v came back as %+v: %v", v, got, err)
		}
	}
	if text := string(c.text(nil, full)); text != "u\t7" || !strings.HasSuffix(c.name, "{string,desc int64}") {
		t.Errorf("text %q of %s", text, c.name)
	}
}
