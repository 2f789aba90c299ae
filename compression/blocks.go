package compression

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
)

// Hadoop's blocks of lz4 and snappy, numbers big-endian:
//
//	+----------------------+--------------------------+------------------+ ...
//	| content length, u32  | length of the chunk, u32 | compressed chunk |
//	+----------------------+--------------------------+------------------+ ...
//
// The content of a block's chunks, one after the other, has the block's content length. A block
// without content has no chunks; an empty file is one such block. Hadoop's reader stops at it. Ours
// reads on, because data may follow where files were joined.
//
// Hadoop's reader takes chunks and contents of up to 256 KiB, so our blocks are one chunk below that.
const (
	hadoopBuffer  = 256 << 10
	snappyContent = hadoopBuffer - hadoopBuffer/6 - 32
	lz4Content    = hadoopBuffer - hadoopBuffer/255 - 16
)

// The first bytes of files in the codecs' own formats, read as lengths. In LZ4's, the next length is above MaxBlock; that
// of Snappy is negative. So neither can begin Hadoop's blocks.
const (
	lz4Frame    = 0x04224D18
	snappyFrame = 0xFF060000
)

// blocks decodes Hadoop's blocks.
type blocks struct {
	unpack  func(dst, chunk []byte, limit int) ([]byte, error) // reuses dst; content of at most limit bytes
	source  *source
	left    int64  // content of the open block that has not been unpacked
	content []byte // unpacked, not yet read
	chunk   []byte // buffers
	buffer  []byte
	any     bool // a block has begun
}

func newLZ4Decoder() decoder { return &blocks{unpack: unpackLZ4} }

func newSnappyDecoder() decoder { return &blocks{unpack: unpackSnappy} }

func (b *blocks) reset(s *source, _ Piece) {
	*b = blocks{unpack: b.unpack, source: s, chunk: b.chunk, buffer: b.buffer}
}

func (b *blocks) close() {}

func (b *blocks) Read(p []byte) (int, error) {
	for len(b.content) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.content)
	b.content = b.content[n:]
	return n, nil
}

// next unpacks the next chunk. It returns io.EOF after the last block.
func (b *blocks) next() error {
	if b.left == 0 {
		n, err := b.number("block")
		if err == io.EOF && b.any {
			return io.EOF
		}
		if err != nil {
			return truncated(err)
		}
		b.any, b.left = true, n
		return nil
	}
	n, err := b.number("chunk")
	if err != nil {
		return truncated(err)
	}
	if b.left == lz4Frame && n > MaxBlock {
		return fmt.Errorf("%w: it has LZ4's own frames, as of the command lz4: unpack it", ErrFormat)
	}
	if n > MaxBlock && b.content == nil { // text has such lengths
		return &Error{Err: otherData(string(binary.BigEndian.AppendUint64(nil, uint64(b.left<<32|n))))}
	}
	if n == 0 || n > MaxBlock {
		return fmt.Errorf("a chunk of %d bytes: want 1 to %d", n, MaxBlock)
	}
	if b.chunk, err = readGrowing(b.chunk[:0], b.source, int(n)); err != nil {
		return truncated(err)
	}
	limit := int(min(b.left, MaxBlock))
	if b.buffer, err = b.unpack(b.buffer, b.chunk, limit); err != nil {
		return err
	}
	if len(b.buffer) == 0 || len(b.buffer) > limit {
		return fmt.Errorf("a chunk has %d bytes of the %d that its block still needs", len(b.buffer), b.left)
	}
	b.content = b.buffer
	b.left -= int64(len(b.content))
	return nil
}

// number reads a length of 31 bits.
func (b *blocks) number(of string) (int64, error) {
	var head [4]byte
	if _, err := io.ReadFull(b.source, head[:]); err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if uint32(n) == snappyFrame {
		return 0, fmt.Errorf("%w: it has Snappy's own frames, as of the command snzip: unpack it", ErrFormat)
	}
	if n < 0 {
		return 0, fmt.Errorf("the length of a %s is %d", of, n)
	}
	return int64(n), nil
}

func truncated(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ErrTruncated
	}
	return err
}

// readGrowing appends n bytes. It allocates memory only for bytes that are there.
func readGrowing(dst []byte, r io.Reader, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, max(len(dst), bufferSize))
		if cap(dst)-len(dst) < step {
			dst = append(make([]byte, 0, len(dst)+step), dst...)
		}
		got, err := io.ReadFull(r, dst[len(dst):len(dst)+step])
		dst = dst[:len(dst)+got]
		if err != nil {
			return dst, err
		}
		n -= step
	}
	return dst, nil
}

func unpackSnappy(dst, chunk []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(chunk)
	if err != nil {
		return nil, err
	}
	if n > limit || n > 32*len(chunk) { // three bytes make 64 at most
		return nil, fmt.Errorf("a Snappy chunk of %d bytes claims %d bytes of content; its block needs %d", len(chunk), n, limit)
	}
	return snappy.DecodeStrict(dst[:cap(dst)], chunk)
}

func unpackLZ4(dst, chunk []byte, limit int) ([]byte, error) {
	limit = min(limit, 256*len(chunk)) // one byte makes 255 at most
	for size := min(limit, max(cap(dst), hadoopBuffer)); ; size = min(limit, 2*size) {
		if cap(dst) < size {
			dst = make([]byte, size)
		}
		n, err := lz4.UncompressBlock(chunk, dst[:size])
		if err == nil {
			return dst[:n], nil
		}
		if size == limit || !errors.Is(err, lz4.ErrInvalidSourceShortBuffer) {
			return nil, err
		}
	}
}

// blockWriter writes Hadoop's blocks.
type blockWriter struct {
	w       io.Writer
	pack    func(dst, content []byte) ([]byte, error) // reuses dst
	content []byte                                    // of the open block; its capacity is a block's
	chunk   []byte
	any     bool // a block was written
	err     error
}

func newSnappyWriter(w io.Writer) (io.WriteCloser, error) {
	return &blockWriter{w: w, content: make([]byte, 0, snappyContent), pack: func(dst, content []byte) ([]byte, error) {
		return s2.EncodeSnappy(dst[:cap(dst)], content), nil
	}}, nil
}

func newLZ4Writer(w io.Writer) (io.WriteCloser, error) {
	var c lz4.Compressor
	return &blockWriter{w: w, content: make([]byte, 0, lz4Content), pack: func(dst, content []byte) ([]byte, error) {
		if bound := lz4.CompressBlockBound(len(content)); cap(dst) < bound {
			dst = make([]byte, bound)
		}
		n, err := c.CompressBlock(content, dst[:cap(dst)])
		return dst[:n], err
	}}, nil
}

func (b *blockWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && b.err == nil {
		step := min(len(p), cap(b.content)-len(b.content))
		b.content = append(b.content, p[:step]...)
		p, n = p[step:], n+step
		if len(b.content) == cap(b.content) {
			b.flush()
		}
	}
	return n, b.err
}

func (b *blockWriter) flush() {
	if b.chunk, b.err = b.pack(b.chunk, b.content); b.err != nil {
		return
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(b.content)))
	head = binary.BigEndian.AppendUint32(head, uint32(len(b.chunk)))
	if _, b.err = b.w.Write(head); b.err == nil {
		_, b.err = b.w.Write(b.chunk)
	}
	b.content, b.any = b.content[:0], true
}

// Reset begins another file.
func (b *blockWriter) Reset(w io.Writer) { b.w, b.content, b.any, b.err = w, b.content[:0], false, nil }

func (b *blockWriter) Close() error {
	switch {
	case b.err != nil:
	case len(b.content) > 0:
		b.flush()
	case !b.any:
		_, b.err = b.w.Write(make([]byte, 4))
		b.any = true
	}
	return b.err
}
