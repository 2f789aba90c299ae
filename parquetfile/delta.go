package parquetfile

import "encoding/binary"

// maxBlock limits the values of a block, which a few bytes can have.
const maxBlock = 1 << 16

// deltas reads integers in the encoding DELTA_BINARY_PACKED. It computes modulo 2^64, which is right for int32, too. The
// header has four numbers, each block the least delta and the widths of its parts:
//
//	header   block size uvarint, parts of a block uvarint, number of values uvarint, first value zigzag
//	block    least delta zigzag, a width byte for each part, parts of packed deltas
type deltas struct {
	data   []byte // what comes after the current part; the array has padding after it
	left   int    // values not yet read
	value  uint64 // the next one
	parts  int    // of a block
	part   int    // values of a part
	widths []byte // of the rest of the block's parts
	least  uint64

	now   []byte // the current part
	width uint
	unit  int // values of it not yet read
	bit   int
}

func newDeltas(data []byte) (d deltas, err error) {
	d.data = data
	block, parts, left := d.uvarint(&err), d.uvarint(&err), d.uvarint(&err)
	d.value = d.zigzag(&err)
	switch {
	case err != nil:
		return d, err
	case block == 0 || block > maxBlock || parts == 0 || parts > block || block%parts != 0 || block/parts%8 != 0:
		return d, damaged("blocks of %d deltas in %d parts", block, parts)
	case left > 1<<31:
		return d, damaged("%d values of deltas", left)
	}
	d.left, d.parts, d.part = int(left), int(parts), int(block/parts)
	return d, nil
}

func (d *deltas) uvarint(err *error) uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		*err = damaged("a number of deltas is missing or too long")
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *deltas) zigzag(err *error) uint64 {
	v := d.uvarint(err)
	return v>>1 ^ -(v & 1)
}

// next returns the next value.
func (d *deltas) next() (uint64, error) {
	if d.left == 0 {
		return 0, damaged("there are fewer deltas than values")
	}
	v := d.value
	if d.left--; d.left == 0 {
		return v, nil
	}
	if d.unit == 0 {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	d.value += d.least + d.unpack()
	d.unit--
	return v, nil
}

// begin begins the next part, and the next block if it is needed.
func (d *deltas) begin() (err error) {
	if len(d.widths) == 0 {
		d.least = d.zigzag(&err)
		if err == nil && len(d.data) < d.parts {
			err = damaged("a block of deltas ends too early")
		}
		if err != nil {
			return err
		}
		d.widths, d.data = d.data[:d.parts], d.data[d.parts:]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	size := d.part / 8 * int(d.width)
	need := (min(d.part, d.left)*int(d.width) + 7) / 8 // the last part may be shorter
	if d.width > 64 || need > len(d.data) {
		return damaged("a part with deltas of %d bits ends too early", d.width)
	}
	size = min(size, len(d.data))
	d.now, d.data, d.unit, d.bit = d.data[:size+padding], d.data[size:], d.part, 0
	return nil
}

func (d *deltas) unpack() uint64 {
	at, shift := d.bit>>3, uint(d.bit&7)
	v := binary.LittleEndian.Uint64(d.now[at:]) >> shift
	if shift+d.width > 64 {
		v |= uint64(d.now[at+8]) << (64 - shift)
	}
	d.bit += int(d.width)
	if d.width < 64 {
		v &= 1<<d.width - 1
	}
	return v
}

// rest returns the data after the deltas.
func (d deltas) rest() ([]byte, error) {
	for d.left > 1 {
		if d.unit == 0 {
			if err := d.begin(); err != nil {
				return nil, err
			}
		}
		n := min(d.unit, d.left-1)
		d.unit, d.left = d.unit-n, d.left-n
	}
	return d.data, nil
}
