package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/quernmr/quern/formats/internal/setting"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/parquetfile"
)

// Format writes Parquet files; see [Output].
type Format[K, V, T any] struct{ row func(K, V) T }

// Output returns the format of Parquet files with one row for each record of a result. Fields of T are columns, as for
// [Input]; in addition, uint8 to uint64 and fields with decimal in their tag have a precision. Pointers and fields with
// optional in their tag are columns that may be null: nil, or the field's zero value. A slice of pointers needs list in
// its tag. time.Time is written in nanoseconds, unless its tag has another unit, or date.
func Output[K, V, T any](row func(key K, value V) T) *Format[K, V, T] { return &Format[K, V, T]{row} }

func (*Format[K, V, T]) Name() string { return Name }

// Suffix returns the suffix of output files.
func (*Format[K, V, T]) Suffix() string { return ".parquet" }

// Create begins a file.
func (f *Format[K, V, T]) Create(t *mapreduce.Task, file io.Writer) (mapreduce.FileWriter[K, V], error) {
	codec, err := codecOf(t.Property(compressionName))
	if err != nil {
		return nil, err
	}
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	block, err := setting.Number(t.Property, blockSize)
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(file, 256<<10)
	w := parquet.NewGenericWriter[T](buffer, schema, parquet.Compression(codec))
	return &writer[K, V, T]{Format: f, buffer: buffer, file: w, block: block}, nil
}

func codecOf(name string) (compress.Codec, error) {
	switch strings.ToUpper(name) {
	case "UNCOMPRESSED":
		return &parquet.Uncompressed, nil
	case "SNAPPY":
		return &parquet.Snappy, nil
	case "GZIP":
		return &parquet.Gzip, nil
	case "BROTLI":
		return &parquet.Brotli, nil
	case "ZSTD":
		return &parquet.Zstd, nil
	case "LZ4_RAW":
		return &parquet.Lz4Raw, nil
	}
	return nil, fmt.Errorf("%s=%s: there is no such codec; there are %s", compressionName, name, parquetfile.Codecs)
}

// schemaOf returns the schema of a struct. The library panics for tags that it does not understand.
func schemaOf(row reflect.Type) (schema *parquet.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("struct %s as rows of a Parquet file: %v", row, p)
		}
	}()
	if err := checkParts(row, 0); err != nil {
		return nil, err
	}
	fields, err := fieldsOf(row)
	if err != nil {
		return nil, err
	}
	var options []parquet.SchemaOption
	for i := range fields {
		if f := &fields[i]; f.kind == dateType && !f.date {
			tag := f.name + ",date"
			if f.optional {
				tag += ",optional"
			}
			options = append(options, parquet.StructTag(reflect.StructTag(`parquet:"`+tag+`"`), f.own))
		}
	}
	return parquet.SchemaOf(reflect.New(row).Interface(), options...), nil
}

// maxNested is the depth of structs in structs that is written.
const maxNested = 30

// checkParts refuses parts of fields that the library would write wrongly: a Date as a number, and nil without its level.
func checkParts(row reflect.Type, depth int) error {
	if depth > maxNested {
		return mismatched("struct %s contains itself, or structs nested more than %d times", row, maxNested)
	}
	fields, err := fieldsOf(row)
	if err != nil {
		return err
	}
	for i := range fields {
		f := &fields[i]
		if f.kind == dateType && !f.date && depth > 0 {
			return mismatched("field %s needs date in its tag, since it is in another struct", f.title)
		}
		parts := []reflect.Type{f.kind}
		for of := f.kind; f.isNested() && (of.Kind() == reflect.Slice || of.Kind() == reflect.Map || of.Kind() == reflect.Pointer); of = of.Elem() {
			parts = append(parts, of.Elem())
			if of.Kind() == reflect.Map {
				parts = append(parts, of.Key())
			}
		}
		for n, part := range parts {
			switch {
			case part.Kind() == reflect.Slice && part.Elem().Kind() == reflect.Pointer && (n > 0 || !f.list):
				return mismatched("field %s has elements that may be nil, which files keep only in a field with list in its tag", f.title)
			case n > 0 && part == dateType:
				return mismatched("field %s has elements of type Date, which only structs have in files", f.title)
			case part.Kind() == reflect.Struct && part != timeType:
				if err := checkParts(part, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

type writer[K, V, T any] struct {
	*Format[K, V, T]
	buffer *bufio.Writer
	file   *parquet.GenericWriter[T]
	rows   [1]T
	n      int
	block  int64
	began  int64 // size of the file at the beginning of the row group
}

// Write writes one row at a time: key and value are not valid afterwards.
func (w *writer[K, V, T]) Write(k K, v V) error {
	w.rows[0] = w.row(k, v)
	if _, err := w.file.Write(w.rows[:]); err != nil {
		return err
	}
	if w.n++; w.n%batch > 0 || w.file.Size()-w.began < w.block {
		return nil
	}
	err := w.file.Flush()
	w.began = w.file.Size()
	return err
}

func (w *writer[K, V, T]) Close() error { return errors.Join(w.file.Close(), w.buffer.Flush()) }
