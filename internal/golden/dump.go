package golden

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// dumper prints a line for each value of a msgpack encoding.
type dumper struct {
	data    []byte
	in      *bytes.Reader
	dec     *msgpack.Decoder
	printed int // number of bytes printed so far
	out     strings.Builder
}

// dump prints every byte of data; head bytes precede the msgpack.
func dump(data []byte, head int) (string, error) {
	d := &dumper{data: data, in: bytes.NewReader(data)}
	d.dec = msgpack.NewDecoder(d.in)
	if head > 0 {
		if _, err := io.CopyN(io.Discard, d.in, int64(head)); err != nil {
			return "", err
		}
		d.line("head", "")
	}
	if err := d.value(""); err != nil {
		return "", err
	}
	if d.in.Len() > 0 {
		_, _ = d.in.Seek(0, io.SeekEnd)
		d.line("tail", "")
	}
	return d.out.String(), nil
}

// line prints the bytes read since the last line.
func (d *dumper) line(path, value string) {
	at := len(d.data) - d.in.Len()
	fmt.Fprintf(&d.out, "%-36s %-12s | %x\n", path, value, d.data[d.printed:at])
	d.printed = at
}

func (d *dumper) value(path string) error {
	code, err := d.dec.PeekCode()
	if err != nil {
		return err
	}
	switch {
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		n, err := d.dec.DecodeMapLen()
		d.line(path, fmt.Sprintf("{%d}", n))
		for range n {
			name, errName := d.dec.DecodeString()
			err = errors.Join(err, errName, d.value(strings.TrimPrefix(path+"."+name, ".")))
		}
		return err
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		n, err := d.dec.DecodeArrayLen()
		d.line(path, fmt.Sprintf("[%d]", n))
		for i := range n {
			err = errors.Join(err, d.value(fmt.Sprintf("%s[%d]", path, i)))
		}
		return err
	}
	v, err := d.dec.DecodeInterface()
	switch text := v.(type) {
	case string, []byte:
		d.line(path, fmt.Sprintf("%q", text))
	default:
		d.line(path, fmt.Sprint(v))
	}
	return err
}
