package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go/format"

	"github.com/quernmr/quern/internal/javatext"
)

// WriteJSON writes a value of a node as JSON, in one line, and the line's end:
//
//	plain group, map with texts as keys      an object
//	other map                                an array of objects with key and value
//	list, repeated node                      an array
//	integer, float, DECIMAL                  a number; "NaN", "Infinity" and "-Infinity"
//	text                                     a string
//	DATE                                     "2006-01-02"
//	TIMESTAMP, INT96                         "2006-01-02T15:04:05.999Z"; without Z if it has no time zone
//	other bytes                              a string with a character up to U+00FF for each
//
// It keeps little of the line in memory, since a text of a dictionary may be in a row many times.
func (f *File) WriteJSON(w io.Writer, n *Node, v any) error {
	p := jsonPrinter{JSONWriter: javatext.JSONWriter{To: w}, f: f}
	p.value(n, v)
	p.Text("\n")
	return p.Flush()
}

type jsonPrinter struct {
	javatext.JSONWriter
	f *File
}

func (p *jsonPrinter) value(n *Node, v any) {
	if p.Spill() != nil {
		return
	}
	switch v := v.(type) {
	case nil:
		p.Text("null")
	case []any:
		element := *n
		if n.Shape == List && !n.Repeated {
			element = *n.Element()
		}
		element.Repeated = false
		p.list(&element, v)
	case []Entry:
		p.entries(n.Children[0].Children, v)
	case Struct:
		p.Text("{")
		for i, child := range n.Children {
			p.Name(i, child.Name)
			p.value(child, v[i])
		}
		p.Text("}")
	default:
		p.scalar(&p.f.Columns[n.Column], v)
	}
}

func (p *jsonPrinter) list(element *Node, all []any) {
	p.Text("[")
	for i, v := range all {
		p.Comma(i)
		p.value(element, v)
	}
	p.Text("]")
}

func (p *jsonPrinter) entries(entry []*Node, all []Entry) {
	key, value := entry[0], entry[1]
	if key.Optional || key.Shape != Leaf || p.f.Columns[key.Column].Type.Logical != String {
		p.Text("[")
		for i, e := range all {
			p.Comma(i)
			p.Text("{")
			p.Name(0, key.Name)
			p.value(key, e.Key)
			p.Name(1, value.Name)
			p.value(value, e.Value)
			p.Text("}")
		}
		p.Text("]")
		return
	}
	p.Text("{")
	for i, e := range all {
		name, _ := e.Key.(string)
		p.Name(i, name)
		p.value(value, e.Value)
	}
	p.Text("}")
}

// maxDecimal is the bytes of a decimal that is printed. Those of maxDigits are half of it, and the time grows with the square.
const maxDecimal = 8 << 10

func (p *jsonPrinter) scalar(c *ColumnInfo, v any) {
	if s, ok := v.(string); ok && c.Type.Logical == Decimal && len(s) > maxDecimal {
		p.Err = &Error{Offset: p.f.footer, Group: -1, Err: unsupported("column %s has a decimal of %d bytes; at most %d are printed", c.Name, len(s), maxDecimal)}
		return
	}
	p.Out = appendValue(p.Out, c.Type, v)
}

// appendValue appends a value of a column.
func appendValue(dst []byte, t Type, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int32:
		return appendInteger(dst, t, int64(v))
	case int64:
		return appendInteger(dst, t, v)
	case float32:
		return javatext.AppendJSONFloat(dst, float64(v), 32)
	case float64:
		return javatext.AppendJSONFloat(dst, v, 64)
	case string:
		switch {
		case t.Logical == String:
			return javatext.AppendJSON(dst, v)
		case t.Logical == Decimal:
			return append(dst, point(bigEndian(v).String(), int(t.Scale))...)
		case t.Physical == format.Int96:
			return TimeOf96(v).AppendFormat(dst, `"2006-01-02T15:04:05.999999999Z"`)
		}
		return javatext.AppendJSONBytes(dst, []byte(v))
	}
	panic(fmt.Sprintf("parquetfile: a value has type %T", v))
}

func appendInteger(dst []byte, t Type, n int64) []byte {
	switch t.Logical {
	case Unsigned:
		return strconv.AppendUint(dst, uint64(n)&(^uint64(0)>>(64-t.Bits)), 10)
	case Decimal:
		return append(dst, point(strconv.FormatInt(n, 10), int(t.Scale))...)
	case Date:
		return time.Unix(n*24*60*60, 0).UTC().AppendFormat(dst, `"2006-01-02"`)
	case Timestamp:
		layout := `"2006-01-02T15:04:05.999999999Z"`
		if t.Local {
			layout = strings.Replace(layout, "Z", "", 1)
		}
		return TimeOf(n, t.Unit).AppendFormat(dst, layout)
	}
	return strconv.AppendInt(dst, n, 10)
}

// bigEndian decodes a number in two's complement.
func bigEndian(v string) *big.Int {
	n := new(big.Int).SetBytes([]byte(v))
	if v != "" && v[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	return n
}

// point returns a whole number with the point before its last digits.
func point(digits string, scale int) string {
	if scale == 0 {
		return digits
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	digits = strings.Repeat("0", max(scale+1-len(digits), 0)) + digits
	at := len(digits) - scale
	return sign + digits[:at] + "." + digits[at:]
}

// TimeOf returns the time that is n units after 1970.
func TimeOf(n int64, unit string) time.Time {
	switch unit {
	case "MILLIS":
		return time.UnixMilli(n).UTC()
	case "MICROS":
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// TimeOf96 decodes Impala's timestamps: nanoseconds of the day, then the Julian day, little-endian.
func TimeOf96(v string) time.Time {
	if len(v) != 12 {
		return time.Time{} // null
	}
	b := []byte(v)
	const julian1970 = 2440588
	days := int64(binary.LittleEndian.Uint32(b[8:])) - julian1970
	return time.Unix(days*24*60*60, int64(binary.LittleEndian.Uint64(b))).UTC()
}
