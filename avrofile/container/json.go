package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/quernmr/quern/internal/javatext"
)

const (
	maxNested  = 1000    // values in values; a schema may contain itself
	freeValues = 1 << 20 // values that a record may have, and for each byte:
	byteValues = 100
)

// WriteJSON writes the records of the file as Java's JsonEncoder does, a line each: a value of a union other than null is
// {"type": value}, and bytes are characters up to U+00FF. Entries of maps are in the order of the file. A damaged record may
// be written in part.
func (r *Reader) WriteJSON(w io.Writer) error {
	s, err := parseSchema(r.Metadata["avro.schema"])
	if err != nil {
		return Damaged(0, "schema of the file: %w", err)
	}
	p := printer{JSONWriter: javatext.JSONWriter{To: w}}
	decode := func(content []byte) ([]byte, error) {
		p.in = decoder{data: content, values: byteValues*len(content) + freeValues}
		p.value(s, 0)
		p.Text("\n")
		return p.in.data, p.in.err
	}
	for err := range r.Records(0, math.MaxInt64, decode) {
		if p.Err != nil {
			return p.Err
		}
		if err != nil {
			return errors.Join(err, p.Flush())
		}
	}
	return p.Flush()
}

// printer writes decoded values.
type printer struct {
	javatext.JSONWriter
	in decoder
}

// value writes the next value, which has a schema.
func (p *printer) value(s *schema, depth int) {
	if p.in.spend(); depth > maxNested {
		p.in.fail(fmt.Errorf("values are nested more than %d times", maxNested))
	}
	if p.in.err != nil {
		return
	}
	switch s.kind {
	case "record":
		p.Text("{")
		for i, f := range s.fields {
			p.Name(i, f.name)
			p.value(f.schema, depth+1)
		}
		p.Text("}")
	case "array", "map":
		p.entries(s, depth)
	case "union":
		p.branch(s, depth)
	default:
		p.scalar(s)
	}
	if err := p.Spill(); err != nil {
		p.in.fail(err)
	}
}

func (p *printer) entries(s *schema, depth int) {
	begin, end := "[", "]"
	if s.kind == "map" {
		begin, end = "{", "}"
	}
	p.Text(begin)
	i := 0
	p.in.blocks(func() {
		if s.kind == "map" {
			p.Name(i, string(p.in.bytes()))
		} else {
			p.Comma(i)
		}
		i++
		p.value(s.items, depth+1)
	})
	p.Text(end)
}

func (p *printer) branch(s *schema, depth int) {
	n := p.in.long()
	if p.in.err == nil && (n < 0 || n >= int64(len(s.branches))) {
		p.in.fail(fmt.Errorf("branch %d of a union of %d", n, len(s.branches)))
	}
	if p.in.err != nil {
		return
	}
	of := s.branches[n]
	if of.kind == "null" {
		p.value(of, depth+1)
		return
	}
	p.Text("{")
	p.Name(0, of.title())
	p.value(of, depth+1)
	p.Text("}")
}

func (p *printer) scalar(s *schema) {
	switch s.kind {
	case "null":
		p.Text("null")
	case "boolean":
		b := p.in.take(1)
		if p.in.err == nil && b[0] > 1 {
			p.in.fail(fmt.Errorf("a boolean is %d", b[0]))
		}
		p.Out = fmt.Append(p.Out, p.in.err == nil && b[0] == 1)
	case "int", "long":
		n := p.in.long()
		if s.kind == "int" && n != int64(int32(n)) {
			p.in.fail(fmt.Errorf("an int is %d", n))
		}
		p.Out = fmt.Append(p.Out, n)
	case "float":
		if b := p.in.take(4); p.in.err == nil {
			p.Out = javatext.AppendJSONFloat(p.Out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		}
	case "double":
		if b := p.in.take(8); p.in.err == nil {
			p.Out = javatext.AppendJSONFloat(p.Out, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		}
	case "string":
		p.Out = javatext.AppendJSON(p.Out, string(p.in.bytes()))
	case "bytes":
		p.Out = javatext.AppendJSONBytes(p.Out, p.in.bytes())
	case "fixed":
		p.Out = javatext.AppendJSONBytes(p.Out, p.in.take(s.size))
	case "enum":
		n := p.in.long()
		if p.in.err == nil && (n < 0 || n >= int64(len(s.symbols))) {
			p.in.fail(fmt.Errorf("symbol %d of an enum of %d", n, len(s.symbols)))
		}
		if p.in.err == nil {
			p.Out = javatext.AppendJSON(p.Out, s.symbols[n])
		}
	}
}

// decoder decodes Avro's binary encoding. After an error, it returns zero values.
type decoder struct {
	data   []byte
	err    error
	values int // that may follow
}

var errShort = errors.New("it ends too early")

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// spend counts a value. Without a bound, a few types in types would have 2^n values without bytes.
func (d *decoder) spend() {
	if d.values--; d.values < 0 {
		d.fail(errors.New("it has too many values for its bytes"))
	}
}

func (d *decoder) long() int64 {
	v, n := binary.Varint(d.data)
	switch {
	case d.err != nil:
		return 0
	case n == 0:
		d.fail(errShort)
		return 0
	case n < 0:
		d.fail(errNumber)
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && n > len(d.data) {
		d.fail(errShort)
	}
	if d.err != nil {
		return nil
	}
	b := d.data[:n:n]
	d.data = d.data[n:]
	return b
}

// bytes returns bytes that have their length before them.
func (d *decoder) bytes() []byte {
	n := d.long()
	if n < 0 || n > int64(len(d.data)) {
		d.fail(fmt.Errorf("a length of %d bytes, where %d are left", n, len(d.data)))
		return nil
	}
	return d.take(int(n))
}

// blocks calls item for each entry of an array or map.
func (d *decoder) blocks(item func()) {
	for d.err == nil {
		n := d.long()
		if n == 0 {
			return
		}
		if n < 0 { // the block's bytes follow
			d.long()
			n = -n
		}
		if n < 0 {
			d.fail(errNumber)
		}
		for ; n > 0 && d.err == nil; n-- {
			item()
		}
	}
}
