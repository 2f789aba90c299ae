package streaming

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/quernmr/quern/mapreduce/streaming/records"
	"github.com/quernmr/quern/sequencefile/writable"
)

// Forms in which a command reads or writes records. Hadoop takes every other name for text.
const (
	textForm    = "text"
	rawForm     = "rawbytes"
	typedForm   = "typedbytes"
	keyOnlyForm = "keyonlytext" // lines that are keys
)

// formOf returns the form with a name.
func formOf(name string) string {
	switch name = strings.ToLower(name); name {
	case rawForm, typedForm, keyOnlyForm:
		return name
	}
	return textForm
}

// Classes of keys and values. In this package a Text, BytesWritable or TypedBytesWritable is its content, and a value of
// any other class is encoded as its Writable.
const (
	textClass  = "org.apache.hadoop.io.Text"
	bytesClass = "org.apache.hadoop.io.BytesWritable"
	longClass  = "org.apache.hadoop.io.LongWritable"
	nullClass  = "org.apache.hadoop.io.NullWritable"
	typedClass = "org.apache.hadoop.typedbytes.TypedBytesWritable"
)

// classes are those of a record.
type classes struct{ key, value string }

func (c classes) String() string { return c.key + " and " + c.value }

var texts = classes{textClass, textClass}

// written returns the classes of what a command writes in a form.
func written(form string) classes {
	switch form {
	case rawForm:
		return classes{bytesClass, bytesClass}
	case typedForm:
		return classes{typedClass, typedClass}
	case keyOnlyForm:
		return classes{textClass, nullClass}
	}
	return texts
}

// appender appends a key or value to dst.
type appender func(dst, data []byte) ([]byte, error)

func plain(dst, data []byte) ([]byte, error) { return append(dst, data...), nil }

// asText appends what Java's toString returns.
func asText(class string) appender {
	switch class {
	case textClass:
		return plain
	case bytesClass:
		return func(dst, data []byte) ([]byte, error) { return records.AppendHex(dst, data), nil }
	case typedClass:
		return records.AppendText
	case nullClass:
		return func(dst, _ []byte) ([]byte, error) { return append(dst, "(null)"...), nil }
	case longClass:
		return func(dst, data []byte) ([]byte, error) {
			return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(data)), 10), nil
		}
	}
	return func(dst, data []byte) ([]byte, error) {
		v, known, err := writable.Decode(class, data)
		if err == nil && !known {
			err = unknownClass(class)
		}
		if err != nil {
			return dst, err
		}
		return writable.AppendJava(dst, v), nil
	}
}

func unknownClass(class string) error {
	return fmt.Errorf("class %s: Quern runs no Java, and has only the Writables of org.apache.hadoop.io", class)
}

// fed appends what a command reads as text: bytes are not shown, as toString does, but passed.
func fed(class string) appender {
	if class == bytesClass || class == typedClass {
		return plain
	}
	return asText(class)
}

// asWritable appends the encoding of a class.
func asWritable(class string) appender {
	switch class {
	case textClass:
		return writable.TextBytes.Append
	case bytesClass, typedClass:
		return writable.Bytes.Append
	}
	return plain
}

// ofWritable is the inverse of asWritable, without a copy.
func ofWritable(class string) func(data []byte) ([]byte, error) {
	switch class {
	case textClass:
		return writable.TextBytes.Value
	case bytesClass, typedClass:
		return writable.Bytes.Value
	case longClass:
		return func(data []byte) ([]byte, error) {
			_, err := writable.Long.Value(data)
			return data, err
		}
	}
	return func(data []byte) ([]byte, error) { return data, nil }
}

// asRaw appends rawbytes.
func asRaw(class string) appender {
	if class == bytesClass || class == typedClass {
		return func(dst, data []byte) ([]byte, error) { return records.AppendRaw(dst, data), nil }
	}
	encode, encoded := asWritable(class), []byte(nil)
	return func(dst, data []byte) (_ []byte, err error) {
		if encoded, err = encode(encoded[:0], data); err != nil {
			return dst, err
		}
		return records.AppendRaw(dst, encoded), nil
	}
}

// asTyped appends typedbytes.
func asTyped(class string) appender {
	switch class {
	case typedClass:
		return plain
	case bytesClass:
		return func(dst, data []byte) ([]byte, error) { return records.AppendBytes(dst, data), nil }
	case textClass:
		return func(dst, data []byte) ([]byte, error) { return records.AppendString(dst, data), nil }
	case longClass:
		return func(dst, data []byte) ([]byte, error) {
			return records.AppendLong(dst, int64(binary.BigEndian.Uint64(data))), nil
		}
	}
	return func(dst, data []byte) ([]byte, error) {
		v, known, err := writable.Decode(class, data)
		switch {
		case err != nil:
			return dst, err
		case !known:
			return dst, unknownClass(class)
		}
		return records.AppendValue(dst, v, class, data), nil
	}
}

// feeder writes a record to a command, n times.
type feeder func(to *input, key, value []byte, n int) error

// newFeeder returns the feeder of a form. With ignoreKey a line has no key.
func newFeeder(form string, of classes, separator string, ignoreKey bool) feeder {
	between := []byte(separator)
	if form == textForm && of == texts { // the most frequent one, without a copy
		if ignoreKey {
			return func(to *input, _, value []byte, n int) error { return to.lines(n, value) }
		}
		return func(to *input, key, value []byte, n int) error { return to.lines(n, key, between, value) }
	}
	putKey, putValue, end := fed(of.key), fed(of.value), []byte("\n")
	switch form {
	case rawForm:
		putKey, putValue, between, end = asRaw(of.key), asRaw(of.value), nil, nil
	case typedForm:
		putKey, putValue, between, end = asTyped(of.key), asTyped(of.value), nil, nil
	case keyOnlyForm:
		putValue, between = func(dst, _ []byte) ([]byte, error) { return dst, nil }, nil
	case textForm:
		if ignoreKey {
			between = nil
			putKey = func(dst, _ []byte) ([]byte, error) { return dst, nil }
		}
	}
	var buf []byte
	return func(to *input, key, value []byte, n int) (err error) {
		if buf, err = putKey(buf[:0], key); err == nil {
			buf, err = putValue(append(buf, between...), value)
		}
		if err != nil {
			return fmt.Errorf("a record of %v as %s: %w", of, form, err)
		}
		buf = append(buf, end...)
		for ; n > 0 && err == nil; n-- {
			err = to.write(buf)
		}
		return err
	}
}

// nextRecord returns the next record that a command has written; io.EOF: there is none.
type nextRecord func() (key, value []byte, err error)

// newReader returns the records of a command's output in a form.
func (c *compiled) newReader(form string, cut splitting) func(out io.Reader, alive func()) nextRecord {
	return func(out io.Reader, alive func()) nextRecord {
		switch form {
		case rawForm:
			return records.NewReader(out, c.lineMax, alive).Raw
		case typedForm:
			return records.NewReader(out, c.lineMax, alive).Typed
		}
		all := newLines(out, c.lineMax, alive)
		return func() (key, value []byte, err error) {
			line, err := all.next()
			switch {
			case err != nil:
				return nil, nil, err
			case form == keyOnlyForm:
				return line, nil, nil
			}
			key, value = cut.cut(line)
			return key, value, nil
		}
	}
}
