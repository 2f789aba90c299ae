// Package golden pins the encoded bytes of values in texts below testdata/golden. Only
// tests import it.
//
// A build reads messages, log entries, snapshots, staged files and histories that other
// builds have written. Decoders find fields by name: a field with another name silently
// stays zero. So struct tags fix the names, and [Run] compares the encoding of a value of
// each type with a golden text:
//
//	record NAME, and a description
//	----
//	path of a field   value | hex of its name and value
//	omitempty: paths of fields that are omitted if they are zero
//
// The hex digits of all lines together are the encoding. JSON is shown as text, and
// encodings without names as plain hex.
package golden

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Record describes an encoded type.
type Record struct {
	Value  any // pointer to its zero value
	Form   Form
	Head   int                             // bytes before the msgpack
	Adjust func(value any)                 // replaces the values that Run sets if they are invalid; may be nil
	Encode func(value any) ([]byte, error) // value is the pointer
	Decode func(data []byte, value any) error
}

// Form says how the encoding identifies fields: by the names in struct tags with this key,
// or by position.
type Form string

const (
	Msgpack    Form = "msgpack"
	JSON       Form = "json"
	ByPosition Form = ""
)

// OfJSON returns the Record of a type that is encoded as JSON.
func OfJSON(value any) Record {
	indent := func(value any) ([]byte, error) { return json.MarshalIndent(value, "", "  ") }
	return Record{Value: value, Form: JSON, Encode: indent, Decode: json.Unmarshal}
}

// Run sets every field of each record, encodes the record, compares the bytes with the text
// in file, and decodes them. The file must have all records.
func Run(t *testing.T, file string, records map[string]Record) {
	t.Helper()
	found := make(map[string]bool)
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		var name string
		if len(d.CmdArgs) > 0 {
			name = d.CmdArgs[0].Key
		}
		r, ok := records[name]
		if d.Cmd != "record" || !ok {
			d.Fatalf(t, "no %s %s in the test", d.Cmd, name)
		}
		found[name] = true
		text, err := r.text()
		if err != nil {
			d.Fatalf(t, "%s: %v", name, err)
		}
		return text
	})
	for name := range records {
		if !found[name] {
			t.Errorf("%s does not have %s: add the lines \"record %[2]s\" and \"----\", and run the test with -rewrite", file, name)
		}
	}
}

func (r *Record) text() (string, error) {
	blank := func() reflect.Value { return reflect.New(reflect.TypeOf(r.Value).Elem()) }
	f := &filler{form: r.Form}
	value, decoded := blank(), blank()
	if err := f.fill(value.Elem(), ""); err != nil {
		return "", err
	}
	if r.Adjust != nil {
		r.Adjust(value.Interface())
	}
	data, err := r.Encode(value.Interface())
	if err != nil {
		return "", err
	}
	if err := r.Decode(slices.Clone(data), decoded.Interface()); err != nil {
		return "", err
	}
	if !reflect.DeepEqual(value.Interface(), decoded.Interface()) {
		return "", fmt.Errorf("%+v decodes to %+v", value, decoded)
	}
	text := string(data) + "\n"
	switch r.Form {
	case Msgpack:
		if text, err = dump(data, r.Head); err != nil {
			return "", err
		}
	case ByPosition:
		text = ""
		for line := range slices.Chunk(data, 32) {
			text += fmt.Sprintf("%x\n", line)
		}
	}
	if len(f.omitted) > 0 {
		text += "omitempty: " + strings.Join(f.omitted, " ") + "\n"
	}
	return text, nil
}
