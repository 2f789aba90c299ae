package mapreduce

import (
	"fmt"
	"reflect"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
)

// Format encodes the records of an output. Use [Text], [Raw] or [Binary], or implement
// your own.
type Format interface {
	// Name identifies the format in the job's description: lower case, no blanks.
	Name() string
	// AppendRecord appends one record to dst. Key and value are as Text would print
	// them, and nil if their type is struct{}.
	AppendRecord(dst, key, value []byte) []byte
}

// Text writes each record as a line: key, tab, value. It leaves out a key or value of
// type struct{}, and the tab with it. The property
// mapreduce.output.textoutputformat.separator replaces the tab.
type Text struct{}

// Raw writes the bytes of the values, with nothing between them. Values must be
// strings or []byte.
type Raw struct {
	Keys bool // write the bytes of each key before its value
}

// Binary writes records as [From] reads them: typed and compact, in segment files with
// checksums, which the reader verifies.
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

// newWriter returns the emit function of an output: it formats and writes records.
func newWriter[K, V any](t *Task, output string, key *codec[K], value *codec[V]) (func(K, V), error) {
	out, err := t.host.open(output)
	if err != nil {
		return nil, err
	}
	lateErr := errLateEmit
	if output != "" {
		lateErr = errLateWrite
	}
	var format func(dst []byte, k K, v V) []byte
	switch f := t.job.format.(type) {
	case Text:
		format = textFormat(key, value, t.Property(property.TextSeparator))
	case Binary:
		format = binaryFormat(key, value)
	default:
		format = customFormat(f, key, value)
	}
	var buf []byte
	return func(k K, v V) {
		if !t.open {
			t.rejectLate(lateErr)
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

func customFormat[K, V any](f Format, key *codec[K], value *codec[V]) func([]byte, K, V) []byte {
	kbuf, vbuf := []byte{}, []byte{} // not nil, which means a struct{}
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

// checkFormat returns an error if the format cannot write records of these types.
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

// rawType reports whether Text prints values of a type as their own bytes.
func rawType[T any]() bool {
	t := reflect.TypeFor[T]()
	return t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
