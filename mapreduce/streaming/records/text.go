package records

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/quernmr/quern/internal/javatext"
)

// AppendHex appends bytes as BytesWritable shows them: two digits each, with blanks between.
func AppendHex(dst, b []byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range b {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// errNoText reports that Java fails to show an object.
var errNoText = errors.New("no text form in Hadoop")

// AppendText appends an object of typedbytes in the text form of Java.
func AppendText(dst, object []byte) ([]byte, error) {
	if _, rest, err := one(object); err != nil { // it may come from a file, and be too deep
		return dst, err
	} else if len(rest) > 0 {
		return dst, fmt.Errorf("%d bytes follow an object", len(rest))
	}
	dst, _, err := appendText(dst, object)
	return dst, err
}

// appendText appends the object at the begin of data.
func appendText(dst, data []byte) (text, rest []byte, err error) {
	if len(data) == 0 {
		return dst, nil, errors.New("an object is empty")
	}
	code, content, rest, err := content(data)
	if err != nil {
		return dst, nil, err
	}
	switch code {
	case byteCode:
		dst = strconv.AppendInt(dst, int64(int8(content[0])), 10)
	case boolCode:
		dst = strconv.AppendBool(dst, content[0] != 0)
	case intCode:
		dst = strconv.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(content))), 10)
	case longCode:
		dst = strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(content)), 10)
	case floatCode:
		dst = javatext.AppendFloat(dst, float64(math.Float32frombits(binary.BigEndian.Uint32(content))), 32)
	case doubleCode:
		dst = javatext.AppendFloat(dst, math.Float64frombits(binary.BigEndian.Uint64(content)), 64)
	case stringCode:
		dst = javatext.AppendUTF8(dst, string(content))
	case vectorCode, listCode:
		return appendList(dst, code, content)
	case mapCode:
		return appendMap(dst, content)
	default:
		dst = fmt.Appendf(dst, "%x", content)
	}
	return dst, rest, nil
}

// content splits the object at the begin of data. The content of a list, vector or map is all that follows.
func content(data []byte) (code byte, content, rest []byte, err error) {
	code, data = data[0], data[1:]
	n := size(code)
	if code == vectorCode || code == listCode || code == mapCode {
		return code, data, nil, nil
	}
	if n == 0 {
		if len(data) < 4 {
			return code, nil, nil, errors.New("an object is torn")
		}
		n, data = int(int32(binary.BigEndian.Uint32(data))), data[4:]
	}
	if n < 0 || n > len(data) {
		return code, nil, nil, errors.New("an object is torn")
	}
	return code, data[:n], data[n:], nil
}

// count returns the count at the begin of a vector or map.
func count(data []byte) (n int, rest []byte, err error) {
	if len(data) < 4 {
		return 0, nil, errors.New("an object is torn")
	}
	return int(int32(binary.BigEndian.Uint32(data))), data[4:], nil
}

func appendList(dst []byte, code byte, data []byte) (text, rest []byte, err error) {
	n := math.MaxInt
	if code == vectorCode {
		if n, data, err = count(data); err != nil {
			return dst, nil, err
		}
		if n < 0 {
			return dst, nil, fmt.Errorf("a vector of %d objects: %w", n, errNoText)
		}
	}
	dst = append(dst, '[')
	for i := 0; i < n; i++ {
		if code == listCode && len(data) > 0 && data[0] == endCode {
			data = data[1:]
			break
		}
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, data, err = appendText(dst, data); err != nil {
			return dst, nil, err
		}
	}
	return append(dst, ']'), data, nil
}

// entry is an entry of a map.
type entry struct{ key, value []byte }

// appendMap appends a map in the order of its keys, which must have one type.
func appendMap(dst, data []byte) (text, rest []byte, err error) {
	n, data, err := count(data)
	if err != nil {
		return dst, nil, err
	}
	var all []entry
	for i := 0; i < n && err == nil; i++ {
		var e entry
		if e.key, data, err = one(data); err == nil {
			e.value, data, err = one(data)
		}
		if err != nil {
			break
		}
		switch code := e.key[0]; {
		case code == vectorCode || code == listCode || code == mapCode:
			return dst, nil, fmt.Errorf("a key of a map is a list or map: %w", errNoText)
		case len(all) > 0 && kind(code) != kind(all[0].key[0]):
			return dst, nil, fmt.Errorf("keys of a map have several types: %w", errNoText)
		}
		all = append(all, e)
	}
	if err != nil {
		return dst, nil, err
	}
	return appendEntries(dst, all, data)
}

func appendEntries(dst []byte, all []entry, rest []byte) (text, after []byte, err error) {
	slices.SortStableFunc(all, func(a, b entry) int { return compare(a.key, b.key) })
	separator := "{"
	for i, e := range all {
		if i+1 < len(all) && compare(e.key, all[i+1].key) == 0 { // the last value of a key counts
			continue
		}
		dst, separator = append(dst, separator...), ", "
		if dst, _, err = appendText(dst, e.key); err != nil {
			return dst, nil, err
		}
		if dst, _, err = appendText(append(dst, '='), e.value); err != nil {
			return dst, nil, err
		}
	}
	if len(all) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}'), rest, nil
}

// one splits the object at the begin of data.
func one(data []byte) (object, rest []byte, err error) {
	r := Reader{from: bytes.NewReader(nil), max: math.MaxInt, buf: data, end: len(data)}
	if err := within(r.object(0)); err != nil {
		return nil, nil, err
	}
	return data[:r.at], data[r.at:], nil
}

// kind returns what Java compares alike: a code, but one for all bytes.
func kind(code byte) byte {
	if code >= firstOwnCode && code <= lastOwnCode {
		return bytesCode
	}
	return code
}

// compare compares two keys of a kind as Java does.
func compare(a, b []byte) int {
	code, x, _, _ := content(a)
	_, y, _, _ := content(b)
	switch code {
	case byteCode, intCode, longCode:
		if x[0] != y[0] { // the first byte has the sign
			return cmp.Compare(int8(x[0]), int8(y[0]))
		}
	case boolCode:
		return cmp.Compare(min(x[0], 1), min(y[0], 1))
	case floatCode:
		return compareFloats(float64(math.Float32frombits(binary.BigEndian.Uint32(x))), float64(math.Float32frombits(binary.BigEndian.Uint32(y))))
	case doubleCode:
		return compareFloats(math.Float64frombits(binary.BigEndian.Uint64(x)), math.Float64frombits(binary.BigEndian.Uint64(y)))
	case stringCode:
		return slices.Compare(units(x), units(y))
	}
	return bytes.Compare(x, y)
}

// units returns a string's units of UTF-16, by which Java compares.
func units(text []byte) []uint16 {
	return utf16.Encode([]rune(string(javatext.AppendUTF8(nil, string(text)))))
}

// compareFloats orders -0 before 0, and NaN last.
func compareFloats(a, b float64) int {
	switch {
	case a != a || b != b:
		return cmp.Compare(truth(a != a), truth(b != b))
	case a == b:
		return cmp.Compare(truth(math.Signbit(b)), truth(math.Signbit(a)))
	}
	return cmp.Compare(a, b)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
