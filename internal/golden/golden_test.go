package golden

import (
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

func textOf[T any](decode func([]byte, any) error) (string, error) {
	r := Record{Value: new(T), Form: Msgpack, Encode: msgpack.Marshal, Decode: decode}
	return r.text()
}

// TestText checks that every field has a line with its encoded name, and that every byte is
// in a line.
func TestText(t *testing.T) {
	type part struct {
		N   int               `msgpack:"n"`
		Map map[string][]byte `msgpack:"m,omitempty"`
	}
	type whole struct {
		Parts []part `msgpack:"p"`
		Flag  *bool  `msgpack:"f"`
		Never string `msgpack:"-"`
	}
	got, err := textOf[whole](func(data []byte, value any) error {
		value.(*whole).Never = "" // not in data
		return msgpack.Unmarshal(data, value)
	})
	want := `                                     {2}          | 82
p                                    [1]          | a17091
p[0]                                 {2}          | 82
p[0].n                               6722         | a16ecd1a42
p[0].m                               {1}          | a16d81
p[0].m.k6623                         "4"          | a56b36363233c40134
f                                    true         | a166c3
omitempty: p[0].m
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestRefused checks that errors name fields without a tag, and values that decoding loses.
func TestRefused(t *testing.T) {
	type hidden struct{ n int }
	type untagged struct{ N int }
	type lost struct {
		N int `msgpack:"n"`
	}
	_ = hidden{n: 1}
	forgets := func([]byte, any) error { return nil }
	for want, encode := range map[string]func() (string, error){
		"golden.hidden.n: only exported":                func() (string, error) { return textOf[hidden](msgpack.Unmarshal) },
		"golden.untagged.N needs a tag `msgpack:\"N\"`": func() (string, error) { return textOf[[]untagged](msgpack.Unmarshal) },
		"decodes to &{N:0}":                             func() (string, error) { return textOf[lost](forgets) },
		"filler does not support the type interface":    func() (string, error) { return textOf[any](msgpack.Unmarshal) },
	} {
		if text, err := encode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q\n%s", err, want, text)
		}
	}
}
