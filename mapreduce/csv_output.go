package mapreduce

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// CSVOutput is the format of files that [CSV] reads. The function makes the row of a record: a struct with columns
// as for CSV, or, without a header, []string. Each file begins with the header, even if it is one of many; a file
// without records is empty. Types with UnmarshalText need MarshalText too. A nil pointer is written as no text, so a
// pointer to an empty string is read as nil.
func CSVOutput[K, V, R any](f CSVFormat, row func(key K, value V) R) Format {
	out := &csvOutput[K, V, R]{format: f, row: row}
	var err error
	out.separator, err = f.separator()
	var columns *csvColumns
	if err == nil {
		columns, err = csvColumnsOf(reflect.TypeFor[R](), f.NoHeader)
	}
	if err != nil {
		out.err = fmt.Errorf("output of CSV: %w", err)
	}
	out.columns = columns
	return out
}

// rowFormat is a format of records that are rows: csvOutput for any type of rows.
type rowFormat[K, V any] interface {
	invalid() error // why the format can write no records at all
	rows(t *Task) func(dst []byte, k K, v V) []byte
}

// csvOutput writes rows of type R.
type csvOutput[K, V, R any] struct {
	format    CSVFormat
	separator string
	row       func(K, V) R
	columns   *csvColumns
	err       error // of the type or the format
}

func (*csvOutput[K, V, R]) Name() string { return "csv" }

func (f *csvOutput[K, V, R]) invalid() error { return f.err }

// rows returns a function that appends the rows of one file, the header before the first one.
func (f *csvOutput[K, V, R]) rows(t *Task) func(dst []byte, k K, v V) []byte {
	begun, width := false, 0
	var fields []string
	return func(dst []byte, k K, v V) []byte {
		if !begun && !f.format.NoHeader {
			dst = appendCSV(dst, f.columns.names, f.separator)
		}
		row := f.row(k, v)
		var err error
		if fields, err = f.columns.fields(fields[:0], reflect.ValueOf(&row).Elem()); err == nil && begun && len(fields) != width {
			err = fmt.Errorf("the row has %d fields, but the first row of the file has %d", len(fields), width)
		}
		if err != nil {
			t.fail(fmt.Errorf("output of CSV: %w", err))
			return nil
		}
		begun, width = true, len(fields)
		return appendCSV(dst, fields, f.separator)
	}
}

// appendCSV appends a row. It quotes what [CSV] would read as another field: separators, quotes, line breaks, a byte
// order mark, and a row that would be an empty line.
func appendCSV(dst []byte, fields []string, separator string) []byte {
	for i, field := range fields {
		if i > 0 {
			dst = append(dst, separator...)
		}
		if len(fields) == 1 && field == "" || strings.Contains(field, separator) || strings.ContainsAny(field, "\"\r\n\ufeff") {
			dst = append(append(append(dst, '"'), strings.ReplaceAll(field, `"`, `""`)...), '"')
		} else {
			dst = append(dst, field...)
		}
	}
	return append(dst, '\n')
}

// csvColumns are the columns of a type of rows.
type csvColumns struct {
	plan  *rowPlan
	names []string
	texts []func(reflect.Value) (string, error)
}

func csvColumnsOf(t reflect.Type, noHeader bool) (*csvColumns, error) {
	plan, err := rowPlanOf(t)
	if err != nil {
		return nil, err
	}
	c := &csvColumns{plan: plan}
	if plan.columns == nil && !noHeader {
		return nil, errors.New("[]string has no names for a header: use a struct, or set NoHeader")
	}
	for _, column := range plan.columns {
		text, err := texterOf(t.FieldByIndex(column.index).Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.name, err)
		}
		c.names, c.texts = append(c.names, column.name), append(c.texts, text)
	}
	return c, nil
}

// fields appends the fields of a row.
func (c *csvColumns) fields(dst []string, row reflect.Value) ([]string, error) {
	if c.plan.columns == nil {
		dst = append(dst, row.Interface().([]string)...)
		if len(dst) == 0 {
			return dst, errors.New("a row has no fields")
		}
	}
	for i := range c.plan.columns {
		text, err := c.texts[i](c.plan.columns[i].field(row))
		if err != nil {
			return dst, fmt.Errorf("column %s: %w", c.names[i], err)
		}
		dst = append(dst, text)
	}
	return dst, nil
}

// texterOf returns a function that prints a field of a type; setterOf reads it again.
func texterOf(t reflect.Type) (func(reflect.Value) (string, error), error) {
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return func(v reflect.Value) (string, error) {
			text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
			return string(text), err
		}, nil
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return nil, fmt.Errorf("%v has UnmarshalText, but no MarshalText", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		text, err := texterOf(t.Elem())
		return func(v reflect.Value) (string, error) {
			if v.IsNil() {
				return "", nil
			}
			return text(v.Elem())
		}, err
	case reflect.Bool:
		return texter(func(v reflect.Value) string { return strconv.FormatBool(v.Bool()) }), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return texter(func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) }), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return texter(func(v reflect.Value) string { return strconv.FormatUint(v.Uint(), 10) }), nil
	case reflect.Float32, reflect.Float64:
		return texter(func(v reflect.Value) string { return floatText(v.Float(), t.Bits()) }), nil
	}
	return texter(reflect.Value.String), nil // rowPlanOf refuses all kinds but strings
}

func texter(text func(reflect.Value) string) func(reflect.Value) (string, error) {
	return func(v reflect.Value) (string, error) { return text(v), nil }
}

// floatText returns the shortest digits that are read as the same number, with an exponent as JSON has it.
func floatText(v float64, bits int) string {
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(v, 'e', -1, bits)
	}
	return strconv.FormatFloat(v, 'f', -1, bits)
}
