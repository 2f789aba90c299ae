package mapreduce

import (
	"fmt"
	"reflect"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
)

// Format is how an output's records are written. [Text], [Raw] and [Binary] are
// there; a format of one's own is made by implementing the two methods.
type Format interface {
	// Name stands in the job's description: lower case, no blanks.
	Name() string
	// AppendRecord appends one record to dst. Key and value are given as Text would
	// print them, and are nil where their type is struct{}.
	AppendRecord(dst, key, value []byte) []byte
}

// Text writes a line for a record: key, tab, value. A key or value of type
// struct{} is left out together with the tab. The property
// mapreduce.output.textoutputformat.separator replaces the tab.
type Text struct{}

// Raw writes the bytes of the values, one after the other and nothing between
// them. Values must be strings or []byte.
type Raw struct {
	Keys bool // write the key's bytes too, before the value's
}

// Binary writes records as [From] and later jobs read them: typed and compact, in
// files as the shuffle's, whose checksums are verified.
type Binary struct{}

func (Text) Name() string { return "text" }

func (Text) AppendRecord(dst, key, value []byte) []byte { return appendLine(dst, key, value, "\t") }

func appendLine(dst, key, value []byte, separator string) []byte {
	dst = append(dst, key...)
	if key != nil && value != nil {
		dst = append(dst, separator...)
	}
	dst = append(dst, value...)
	return append(dst, '\n')
}

func (r Raw) Name() string {
	if r.Keys {
		return "raw-keys"
	}
	return "raw"
}

func (r Raw) AppendRecord(dst, key, value []byte) []byte {
	if r.Keys {
		dst = append(dst, key...)
	}
	return append(dst, value...)
}

func (Binary) Name() string { return "binary" }

func (Binary) AppendRecord(dst, key, value []byte) []byte {
	return mrruntime.BinaryRecord(dst, key, value)
}

// newWriter makes the emit of an output: it formats and writes records.
func newWriter[K, V any](t *Task, output string, key *codec[K], value *codec[V]) (func(K, V), error) {
	out, err := t.host.open(output)
	if err != nil {
		return nil, err
	}
	late := errLateEmit
	if output != "" {
		late = errLateWrite
	}
	var format func(dst []byte, k K, v V) []byte
	switch f := t.job.format.(type) {
	case Text:
		format = textFormat(key, value, t.Property(property.TextSeparator))
	case Binary:
		format = binaryFormat(key, value)
	default:
		format = ownFormat(f, key, value)
	}
	var buf []byte
	return func(k K, v V) {
		if !t.open {
			t.refuse(late)
			return
		}
		buf = format(buf[:0], k, v)
		if err := out.Write(buf); err != nil {
			t.fail(err)
		}
	}, nil
}

func textFormat[K, V any](key *codec[K], value *codec[V], separator string) func([]byte, K, V) []byte {
	if key.null || value.null {
		separator = ""
	}
	return func(dst []byte, k K, v V) []byte {
		dst = key.text(dst, k)
		dst = append(dst, separator...)
		dst = value.text(dst, v)
		return append(dst, '\n')
	}
}

func binaryFormat[K, V any](key *codec[K], value *codec[V]) func([]byte, K, V) []byte {
	var kbuf, vbuf []byte
	return func(dst []byte, k K, v V) []byte {
		return mrruntime.BinaryRecord(dst, key.encode(&kbuf, k), value.encode(&vbuf, v))
	}
}

func ownFormat[K, V any](f Format, key *codec[K], value *codec[V]) func([]byte, K, V) []byte {
	kbuf, vbuf := []byte{}, []byte{} // not nil: nil says that there is none
	return func(dst []byte, k K, v V) []byte {
		kbuf, vbuf = key.text(kbuf[:0], k), value.text(vbuf[:0], v)
		kt, vt := kbuf, vbuf
		if key.null {
			kt = nil
		}
		if value.null {
			vt = nil
		}
		return f.AppendRecord(dst, kt, vt)
	}
}

// checkFormat says why records of these types cannot be written so.
func checkFormat[K, V any](f Format, k *Codec[K], v *Codec[V]) error {
	raw, ok := f.(Raw)
	if !ok {
		return nil
	}
	if !rawType[V]() {
		return fmt.Errorf("format raw writes the bytes of strings and []byte, but values are %s", typeName(v))
	}
	if raw.Keys && !rawType[K]() {
		return fmt.Errorf("format raw writes the bytes of strings and []byte, but keys are %s", typeName(k))
	}
	return nil
}

// rawType says whether the text of a type is its bytes.
func rawType[T any]() bool {
	t := reflect.TypeFor[T]()
	return t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
