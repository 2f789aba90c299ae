package compression

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A block of bzip2, from its mark on, in bits:
//
//	mark 48, CRC 32, randomized 1, position of the first byte 24
//	which bytes occur: 16 groups 16, then 16 for each group
//	tables 3, selectors 15, selectors in unary and moved to the front
//	for each table and symbol a code length: 5, then changes of 2 and an end of 1
//	symbols: runs, bytes moved to the front, an end
//
// The symbols give the block's content after run lengths and the Burrows-Wheeler transform. The standard
// library's decoder, which tests compare with this one, reads neither randomized blocks nor single ones.

const (
	maxBlockContent = 900_000
	groupSize       = 50 // symbols of one table in a row
	maxCodeLength   = 20
	fastBits        = 10 // codes up to this length are in a table
	bitPadding      = 16
)

var (
	errBlock = errors.New("a block is damaged")
	errCodes = fmt.Errorf("%w: it has more codes than bits can tell apart", errBlock)
)

// blockDecoder decodes one block after another.
type blockDecoder struct {
	in        bitReader
	codes     [6]codeTable
	selectors []byte
	tt        []uint32 // content before the transform: in the low byte the byte, above it the position of the next one
	at        uint32   // entry of tt for the first byte
	plain     []byte   // what the transform gives: bytes and run lengths

	ahead     []byte // buffer for content
	left      []byte // of plain: what was not read
	random    *randomized
	last      int // the last byte; -1: none
	repeats   int // of it in a row, up to 4
	run       int // times that last is still to be written
	crc, want uint32
}

// codeTable decodes the symbols of a table.
type codeTable struct {
	fast       [1 << fastBits]uint16     // symbol << 5 | length; 0: a longer code
	first, end [maxCodeLength + 1]uint32 // codes of a length
	index      [maxCodeLength + 1]uint16 // of the symbol of the first one in order
	order      [258]uint16               // symbols by code
}

// bitReader reads bits, the highest of a byte first. It needs bitPadding bytes after those that are read.
type bitReader struct {
	data []byte
	next int    // index of the first byte that is not in acc
	acc  uint64 // the next bits, from the highest on
	n    uint   // how many are valid
}

// fill makes 32 bits or more valid. It reports false at the end of the data.
func (r *bitReader) fill() bool {
	if r.next+8 > len(r.data) {
		return false
	}
	r.acc |= binary.BigEndian.Uint64(r.data[r.next:]) >> r.n
	r.next += int(63-r.n) >> 3
	r.n |= 56
	return true
}

// read returns up to 32 bits. At the end of the data they are zeros.
func (r *bitReader) read(count uint) uint32 {
	if r.n < count && !r.fill() {
		r.acc, r.n = 0, 0
		return 0
	}
	v := uint32(r.acc >> (64 - count))
	r.acc <<= count
	r.n -= count
	return v
}

// position returns how many bits were read.
func (r *bitReader) position() int64 { return 8*int64(r.next) - int64(r.n) }

// begin decodes a block up to its content. The block has the first size bits of data.
func (d *blockDecoder) begin(data []byte, size int64) error {
	d.in = bitReader{data: append(data, make([]byte, bitPadding)...)}
	d.in.read(32)
	d.in.read(16)
	d.want = d.in.read(32)
	d.random = nil
	if d.in.read(1) == 1 {
		d.random = new(randomized)
	}
	origin := d.in.read(24)
	symbols, err := d.readHead()
	if err != nil {
		return err
	}
	counts, err := d.readSymbols(symbols)
	if err != nil {
		return err
	}
	if d.in.position() != size || int(origin) >= len(d.tt) {
		return errBlock
	}
	sum := uint32(0)
	for i, n := range counts {
		counts[i], sum = sum, sum+n
	}
	for i, v := range d.tt {
		b := byte(v)
		d.tt[counts[b]] |= uint32(i) << 8
		counts[b]++
	}
	d.at = d.tt[origin] >> 8
	d.last, d.repeats, d.run, d.crc = -1, 0, 0, 0xffffffff
	return nil
}

// readHead reads the bytes that occur, the selectors and the tables.
func (d *blockDecoder) readHead() (symbols []byte, err error) {
	groups := d.in.read(16)
	for g := range 16 {
		if groups>>(15-g)&1 == 0 {
			continue
		}
		used := d.in.read(16)
		for i := range 16 {
			if used>>(15-i)&1 == 1 {
				symbols = append(symbols, byte(16*g+i))
			}
		}
	}
	tables, selectors := int(d.in.read(3)), int(d.in.read(15))
	if len(symbols) == 0 || tables < 2 || tables > len(d.codes) || selectors == 0 {
		return nil, errBlock
	}
	front := [6]byte{0, 1, 2, 3, 4, 5}
	d.selectors = d.selectors[:0]
	for range selectors {
		i := 0
		for d.in.read(1) == 1 {
			if i++; i >= tables {
				return nil, errBlock
			}
		}
		t := front[i]
		copy(front[1:], front[:i])
		front[0] = t
		d.selectors = append(d.selectors, t)
	}
	for t := range tables {
		if err := d.codes[t].read(&d.in, len(symbols)+2); err != nil {
			return nil, err
		}
	}
	return symbols, nil
}

// read reads a table of codes.
func (c *codeTable) read(in *bitReader, symbols int) error {
	var lengths [258]uint8
	length := int(in.read(5))
	for s := range symbols {
		for {
			if length < 1 || length > maxCodeLength {
				return errBlock
			}
			if in.read(1) == 0 {
				break
			}
			length += 1 - 2*int(in.read(1))
		}
		lengths[s] = uint8(length)
	}
	clear(c.fast[:])
	code, index := uint32(0), uint16(0)
	for n := 1; n <= maxCodeLength; n++ {
		code <<= 1
		c.first[n], c.index[n] = code, index
		for s := range symbols {
			if int(lengths[s]) != n {
				continue
			}
			c.order[index] = uint16(s)
			if n <= fastBits {
				entries := c.fast[code<<(fastBits-n)&(1<<fastBits-1):][:1<<(fastBits-n)]
				for i := range entries {
					entries[i] = uint16(s)<<5 | uint16(n)
				}
			}
			code, index = code+1, index+1
		}
		if code > 1<<n {
			return errCodes
		}
		c.end[n] = code
	}
	return nil
}

// next reads a symbol; -1 for bits that are no code.
func (c *codeTable) next(in *bitReader) int {
	if in.n < 32 && !in.fill() {
		return -1
	}
	if e := c.fast[in.acc>>(64-fastBits)]; e != 0 {
		n := uint(e & 31)
		in.acc <<= n
		in.n -= n
		return int(e >> 5)
	}
	return c.long(in)
}

// long reads a symbol with a long code.
func (c *codeTable) long(in *bitReader) int {
	for n := uint(fastBits + 1); n <= maxCodeLength; n++ {
		if code := uint32(in.acc >> (64 - n)); code >= c.first[n] && code < c.end[n] {
			in.acc <<= n
			in.n -= n
			return int(c.order[c.index[n]+uint16(code-c.first[n])])
		}
	}
	return -1
}

// readSymbols fills tt with bytes, and returns how often each occurs.
func (d *blockDecoder) readSymbols(front []byte) (counts [256]uint32, err error) {
	end := len(front) + 1
	d.tt = d.tt[:0]
	run, weight := 0, 1
	for _, table := range d.selectors {
		codes := &d.codes[table]
		for range groupSize {
			s := codes.next(&d.in)
			if s < 0 {
				return counts, errBlock
			}
			if s <= 1 {
				if run += weight << s; run > maxBlockContent {
					return counts, errBlock
				}
				weight <<= 1
				continue
			}
			if run > 0 {
				if !d.put(front[0], run, &counts) {
					return counts, errBlock
				}
				run, weight = 0, 1
			}
			if s == end {
				return counts, nil
			}
			b := front[s-1]
			copy(front[1:s], front[:s-1])
			front[0] = b
			if len(d.tt) == maxBlockContent {
				return counts, errBlock
			}
			counts[b]++
			d.tt = append(d.tt, uint32(b))
		}
	}
	return counts, errBlock
}

// put appends bytes to tt. It reports false if the block becomes too large.
func (d *blockDecoder) put(b byte, n int, counts *[256]uint32) bool {
	if len(d.tt)+n > maxBlockContent {
		return false
	}
	counts[b] += uint32(n)
	for range n {
		d.tt = append(d.tt, uint32(b))
	}
	return true
}

// Read returns io.EOF after the block's content, if its CRC is right.
func (d *blockDecoder) Read(p []byte) (int, error) {
	n := d.content(p)
	for _, b := range p[:n] {
		d.crc = d.crc<<8 ^ crcTable[byte(d.crc>>24)^b]
	}
	if n == 0 && len(p) > 0 {
		if ^d.crc != d.want {
			return 0, errors.New("wrong checksum of a block")
		}
		return 0, io.EOF
	}
	return n, nil
}

// invert undoes the transforms of several blocks in turns. Each byte of a block has the position of the next one, which is
// rarely in a cache: with turns, the processor waits for the bytes of all blocks at the same time. It sorts blocks.
func invert(blocks []*blockDecoder) {
	for _, d := range blocks {
		d.plain = slices.Grow(d.plain[:0], len(d.tt))[:len(d.tt)]
		d.left = d.plain
	}
	slices.SortFunc(blocks, func(a, b *blockDecoder) int { return len(a.tt) - len(b.tt) })
	for i := 0; len(blocks) > 0; blocks = blocks[1:] {
		for ; i < len(blocks[0].tt); i++ {
			for _, d := range blocks {
				v := d.tt[d.at]
				d.plain[i], d.at = byte(v), v>>8
			}
		}
	}
}

// content undoes the run lengths.
func (d *blockDecoder) content(p []byte) (n int) {
	for n < len(p) {
		if d.run > 0 {
			k := min(d.run, len(p)-n)
			for i := range k {
				p[n+i] = byte(d.last)
			}
			n, d.run = n+k, d.run-k
			continue
		}
		if len(d.left) == 0 {
			return n
		}
		b := d.left[0]
		d.left = d.left[1:]
		if d.random != nil {
			b ^= d.random.bit()
		}
		switch {
		case d.repeats == 4:
			d.run, d.repeats = int(b), 0
			continue
		case int(b) == d.last:
			d.repeats++
		default:
			d.last, d.repeats = int(b), 1
		}
		p[n] = b
		n++
	}
	return n
}

// crcTable is for the CRC-32 of bzip2, which takes the highest bit first.
var crcTable = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			c = c<<1 ^ 0x04c11db7&-(c>>31)
		}
		t[i] = c
	}
	return t
}()
