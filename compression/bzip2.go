package compression

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"runtime"
	"slices"

	dsnet "github.com/dsnet/compress/bzip2"
)

// A block of a bzip2 file belongs to the piece in which its mark begins. No table says where blocks
// begin, so a scanner looks for marks. The bits between two marks are a block. Several blocks are decoded at
// a time.
//
// Compressed data can contain the bits of a mark, once in 2^48 positions. Then the bits up to it are no
// block, and the bits up to the next mark are tried. Only if the first mark of a piece is such a false one,
// its reading fails.
//
// Up to maxAhead blocks of a piece are in memory, of 6 MB at most unless a block is damaged: its bits, its content with and
// without the transform, and what was decoded ahead. Each goroutine decodes a group of them, see invert.

const (
	maxAhead    = 16      // blocks that are decoded at a time
	maxGroups   = 8       // of blocks, each in a goroutine
	maxLanes    = 8       // blocks of a group
	aheadLength = 1 << 20 // content of a block that is decoded before it is read
	falseMarks  = 2       // in one block, at most
	header      = "BZh9"  // of a stream; the last byte is the greatest size of its blocks, in 100,000 bytes
	firstMark   = int64(8 * len(header))
)

// bzip2Decoder reads the blocks of a piece, and then those after it.
type bzip2Decoder struct {
	from, to int64 // the piece, in bits
	scanner  *markScanner
	begun    bool
	queue    []*bzip2Block // in the file's order; the first one may be open
	open     bool          // the first one is being read
	mark     int64         // after the queue, where the next block begins; -1: there is none
	idle     []*blockDecoder

	content   int64 // bytes read
	boundary  int64 // content of the piece; MaxInt64: not known
	isFirst   bool
	streamCRC uint32 // of the stream's blocks so far
	inStream  bool   // the stream's header was read
}

func newBzip2Decoder() decoder { return &bzip2Decoder{} }

func (d *bzip2Decoder) reset(s *source, p Piece) {
	*d = bzip2Decoder{from: 8 * p.From, to: 8 * min(p.To, math.MaxInt64/16), mark: -1, boundary: math.MaxInt64,
		scanner: &markScanner{source: s, base: p.From}}
}

func (d *bzip2Decoder) close() { *d = bzip2Decoder{} }

func (d *bzip2Decoder) first() bool { return d.isFirst }

func (d *bzip2Decoder) end() int64 { return d.boundary }

func (d *bzip2Decoder) Read(p []byte) (int, error) {
	if !d.begun {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	for {
		if !d.open {
			if err := d.next(); err != nil {
				return 0, err
			}
		}
		b := d.queue[0]
		n, err := b.read(p)
		d.content += int64(n)
		switch {
		case err == io.EOF:
			d.streamCRC = bits.RotateLeft32(d.streamCRC, 1) ^ b.decoder.want
			d.pass()
		case err != nil:
			return n, located(b.at, err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// located adds a position in bits to an error.
func located(at int64, err error) error { return &Error{Offset: at / 8, Err: err} }

// begin finds the first mark of the piece. It returns io.EOF if there is none.
func (d *bzip2Decoder) begin() error {
	if d.begun = true; d.from == 0 {
		if err := d.header(0); err != nil {
			return err
		}
	}
	at, ok := d.scanner.find(d.from, d.to)
	switch {
	case d.scanner.err != nil:
		return d.scanner.err
	case d.from == 0 && d.to > firstMark && at != firstMark:
		return d.noMark(firstMark)
	case !ok:
		d.boundary = 0
		return io.EOF
	}
	d.mark, d.isFirst = at, at == firstMark
	return nil
}

// header reads the header of a stream. It returns io.EOF if the file ends there.
func (d *bzip2Decoder) header(offset int64) error {
	head := d.scanner.peek(offset, len(header))
	whole := len(head) == len(header)
	switch {
	case d.scanner.err != nil:
		return d.scanner.err
	case len(head) == 0 && offset > 0:
		return io.EOF
	case !bytes.HasPrefix(head, []byte(header[:min(len(head), 3)])) || whole && (head[3] < '1' || head[3] > '9'):
		if offset > 0 {
			return located(8*offset, errMore)
		}
		return located(0, otherData(string(head)))
	case !whole:
		return located(8*offset, ErrTruncated)
	}
	d.streamCRC, d.inStream = 0, true
	return nil
}

// noMark is the error of a position without mark.
func (d *bzip2Decoder) noMark(at int64) error {
	switch {
	case d.scanner.err != nil:
		return d.scanner.err
	case len(d.scanner.peek(at/8, markBits/8)) < markBits/8:
		return located(at, ErrTruncated)
	}
	return located(at, errors.New("no block begins where one should"))
}

// next opens the next block. It returns io.EOF after the last one.
func (d *bzip2Decoder) next() error {
	for {
		if len(d.queue) == 0 && d.mark < 0 {
			return cmp.Or(d.scanner.err, located(d.scanner.end(), ErrTruncated))
		}
		groups, lanes := groups()
		for len(d.queue) == 0 || len(d.queue) <= lanes*(groups-1) && d.more() {
			d.extend(lanes)
		}
		b := d.queue[0]
		if b.at >= d.to {
			d.boundary = min(d.boundary, d.content)
		}
		if b.kind == blockMark {
			d.open = true
			return d.join()
		}
		if err := d.endStream(b); err != nil {
			return err
		}
	}
}

// groups returns how many groups of blocks are decoded at a time, and how many blocks a group has.
func groups() (groups, lanes int) {
	groups = min(runtime.GOMAXPROCS(0), maxGroups)
	return groups, min(maxAhead/groups, maxLanes)
}

// more reports whether a block of the piece follows the queue.
func (d *bzip2Decoder) more() bool { return d.mark >= 0 && d.mark < d.to }

// extend appends a group of blocks to the queue, and decodes it.
func (d *bzip2Decoder) extend(lanes int) {
	var group []*bzip2Block
	for len(group) == 0 || len(group) < lanes && d.more() {
		group = append(group, d.nextBlock())
	}
	d.queue = append(d.queue, group...)
	d.start(group...)
}

// nextBlock returns the block after the queue: from the mark to the next mark or, if there is none, as far as a block
// can be.
func (d *bzip2Decoder) nextBlock() *bzip2Block {
	b := &bzip2Block{at: d.mark, kind: d.scanner.mark(d.mark)}
	limit := b.at + 8*maxBlockBytes
	end, ok := d.scanner.find(b.at+markBits, limit)
	if d.mark = end; !ok {
		d.mark, end = -1, min(limit, d.scanner.end())
	}
	b.end, b.last = end, !ok
	return b
}

// start decodes a group in a goroutine.
func (d *bzip2Decoder) start(group ...*bzip2Block) {
	var blocks []*bzip2Block
	for _, b := range group {
		if b.kind != blockMark {
			continue
		}
		b.decoder, b.done = new(blockDecoder), make(chan struct{})
		if n := len(d.idle); n > 0 {
			b.decoder, d.idle = d.idle[n-1], d.idle[:n-1]
		}
		b.bits = d.scanner.bits(b.at, b.end)
		blocks = append(blocks, b)
	}
	go decode(blocks)
}

// join waits for the first block of the queue. If it ends at a false mark, it joins it with the next.
func (d *bzip2Decoder) join() error {
	b := d.queue[0]
	<-b.done
	if b.err == nil {
		return nil
	}
	for i := 1; i <= falseMarks; i++ {
		if i == len(d.queue) && d.mark >= 0 {
			d.extend(1)
		}
		if i == len(d.queue) || d.queue[i].end-b.at > 8*maxBlockBytes {
			break
		}
		joined := &bzip2Block{at: b.at, end: d.queue[i].end, last: d.queue[i].last, kind: blockMark}
		d.start(joined)
		if <-joined.done; joined.err == nil {
			d.queue = d.queue[i:]
			d.queue[0] = joined
			return nil
		}
	}
	switch {
	case d.scanner.err != nil:
		return d.scanner.err
	case b.last && d.scanner.ended && b.end == d.scanner.end():
		return located(b.at, ErrTruncated)
	}
	return located(b.at, b.err)
}

// pass forgets the first block of the queue.
func (d *bzip2Decoder) pass() {
	d.open = false
	d.scanner.drop(d.queue[0].end)
	if b := d.queue[0]; len(d.idle) < maxAhead {
		d.idle = append(d.idle, b.decoder)
	}
	d.queue = d.queue[1:]
}

// endStream reads an end mark, which is first in the queue, and the header of the next stream. It
// returns io.EOF at the end of the file.
func (d *bzip2Decoder) endStream(b *bzip2Block) error {
	after := (b.at + markBits + crcBits + 7) / 8
	if len(d.scanner.peek(after-1, 1)) == 0 {
		return cmp.Or(d.scanner.err, located(b.at, ErrTruncated))
	}
	crc := binary.BigEndian.Uint32(d.scanner.bits(b.at+markBits, b.at+markBits+crcBits))
	if d.inStream && crc != d.streamCRC {
		return located(b.at, errors.New("wrong checksum of a stream"))
	}
	if err := d.header(after); err != nil {
		return err
	}
	at := 8*after + firstMark
	for len(d.queue) > 0 && d.queue[0].at < at {
		if d.queue = d.queue[1:]; len(d.queue) == 0 && d.mark >= 0 {
			d.extend(1)
		}
	}
	if len(d.queue) == 0 || d.queue[0].at != at {
		return d.noMark(at)
	}
	return nil
}

// bzip2Block is a file's bits from one mark to the next.
type bzip2Block struct {
	at, end int64 // positions in bits
	last    bool  // no mark was found at end
	kind    uint64
	bits    []byte

	done    chan struct{} // closed when the rest is set
	decoder *blockDecoder
	head    []byte // content that was decoded ahead
	whole   bool   // nothing follows it
	err     error
}

// decode decodes a group.
func decode(group []*bzip2Block) {
	var sound []*blockDecoder
	for _, b := range group {
		if b.err = b.decoder.begin(b.bits, b.end-b.at); b.err == nil {
			sound = append(sound, b.decoder)
		}
		b.bits = nil
	}
	invert(sound)
	for _, b := range group {
		if b.err == nil {
			b.err = b.decode()
		}
		close(b.done)
	}
}

// decode decodes the beginning of the content.
func (b *bzip2Block) decode() error {
	b.head = b.decoder.ahead[:0]
	defer func() { b.decoder.ahead = b.head }()
	for len(b.head) < aheadLength {
		if len(b.head) == cap(b.head) { // one byte more than without runs, to see the end
			b.head = slices.Grow(b.head, min(max(len(b.head), len(b.decoder.tt)+1), aheadLength))
		}
		n, err := b.decoder.Read(b.head[len(b.head):cap(b.head)])
		b.head = b.head[:len(b.head)+n]
		if b.whole = err == io.EOF; b.whole {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bzip2Block) read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	if b.whole {
		return 0, io.EOF
	}
	return b.decoder.Read(p)
}

func newBzip2Writer(w io.Writer) (io.WriteCloser, error) {
	return dsnet.NewWriter(w, &dsnet.WriterConfig{Level: dsnet.BestCompression})
}
