package mapreduce

import (
	"fmt"
	"io"
	"reflect"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
)

// Format encodes the records of an output. Use [Text], [Raw], [Binary] or [CSVOutput], a package below
// formats, or implement [RecordFormat] or [FileFormat].
type Format interface {
	// Name identifies the format in the job's description: lower case, no blanks.
	Name() string
}

// RecordFormat is a Format with records that follow each other, with nothing between them,
// before the first or after the last one. The job's codec compresses its files.
type RecordFormat interface {
	Format
	// AppendRecord appends one record to dst. Key and value are as Text would print
	// them, and nil if their type is struct{}.
	AppendRecord(dst, key, value []byte) []byte
}

// FileFormat is a Format with a structure of its own for files of records with keys of type
// K and values of type V. A method Suffix() string gives the names of its files a suffix.
type FileFormat[K, V any] interface {
	Format
	// Create begins a file. Properties of the task can say how; see [Task.Property]. The same task and
	// records give the same file: quern.check=true refuses random numbers and times in it.
	Create(t *Task, file io.Writer) (FileWriter[K, V], error)
}

// FileWriter writes records to a file. Close completes its content.
type FileWriter[K, V any] interface {
	Write(key K, value V) error
	Close() error
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
	if f, ok := t.job.format.(FileFormat[K, V]); ok {
		return newFileWriter(t, output, f)
	}
	out, err := t.host.open(output)
	if err != nil {
		return nil, err
	}
	lateErr := lateErrOf(output)
	var format func(dst []byte, k K, v V) []byte
	switch f := t.job.format.(type) {
	case Text:
		format = textFormat(key, value, t.Property(property.TextSeparator))
	case Binary:
		format = binaryFormat(key, value)
	case RecordFormat:
		format = customFormat(f, key, value)
	case rowFormat[K, V]:
		format = f.rows(t)
	default:
		return nil, mrruntime.Fatal(unsuitable(f, key.name, value.name))
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

// newFileWriter returns the emit function of an output in a format with structure.
func newFileWriter[K, V any](t *Task, output string, f FileFormat[K, V]) (func(K, V), error) {
	suffix := ""
	if s, ok := f.(interface{ Suffix() string }); ok {
		suffix = s.Suffix()
	}
	var file FileWriter[K, V]
	out, err := t.host.container(output, suffix, func(w io.Writer) (end func() error, err error) {
		if file, err = f.Create(t, w); err != nil {
			return nil, err
		}
		return file.Close, nil
	})
	if err != nil {
		return nil, err
	}
	lateErr := lateErrOf(output)
	return func(k K, v V) {
		if !t.open {
			t.rejectLate(lateErr)
			return
		}
		if err := out.Counted(file.Write(k, v)); err != nil {
			t.fail(err)
		}
	}, nil
}

func lateErrOf(output string) error {
	if output != "" {
		return errLateWrite
	}
	return errLateEmit
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

func customFormat[K, V any](f RecordFormat, key *codec[K], value *codec[V]) func([]byte, K, V) []byte {
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
	switch f := f.(type) {
	case Raw:
		if !rawType[V]() {
			return fmt.Errorf("format raw writes the bytes of strings and []byte, but values are %s", typeName(v))
		}
		if f.Keys && !rawType[K]() {
			return fmt.Errorf("format raw writes the bytes of strings and []byte, but keys are %s", typeName(k))
		}
		return nil
	case FileFormat[K, V], RecordFormat:
		return nil
	case rowFormat[K, V]:
		return f.invalid()
	}
	return unsuitable(f, typeName(k), typeName(v))
}

// unsuitable is the error of a format for records of other types.
func unsuitable(f Format, key, value string) error {
	return fmt.Errorf("format %s (%T) does not write records of %s and %s", f.Name(), f, key, value)
}

// rawType reports whether Text prints values of a type as their own bytes.
func rawType[T any]() bool {
	t := reflect.TypeFor[T]()
	return t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
