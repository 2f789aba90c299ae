package compression

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
)

// Errors of compressed files; see [Error].
var (
	ErrTruncated = errors.New("it ends too early")
	ErrFormat    = errors.New("other data than the file's name says")
	ErrDamaged   = errors.New("damaged")
	ErrRatio     = errors.New("it becomes too large")
)

// Error is an error in a compressed file. It wraps one of ErrTruncated, ErrFormat, ErrDamaged and
// ErrRatio. Other errors of a [Reader] are from reading the file itself.
type Error struct {
	Codec  *Codec
	Offset int64 // in the compressed file, near the error
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s at offset %d: %v", e.Codec.Content, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// otherData returns the error of a file with other data, by its first bytes.
func otherData(head string) error {
	return fmt.Errorf("%w: it begins with %.16q; rename the file by what it has", ErrFormat, head)
}

// errMore reports other data after the end.
var errMore = fmt.Errorf("%w: it follows the compressed data; remove it, which may be padding", ErrFormat)

// Whole is the piece of a whole file.
var Whole = Piece{0, math.MaxInt64}

// Piece is a part of a compressed file, from one offset to another. Its content is that of the
// blocks that begin in it. Only a codec that Splits can read another piece than [Whole].
type Piece struct{ From, To int64 }

const (
	bufferSize = 256 << 10
	// freeContent is the content that a file may have in any ratio.
	freeContent = 64 << 20
)

// Reader decompresses one file after another.
type Reader struct {
	MaxRatio int64 // maximum content for each stored byte, after the first 64 MiB; 0: no limit

	codec   *Codec
	source  source
	decoder decoder
	content int64 // bytes read
	err     error
}

// decoder decompresses one file after another.
type decoder interface {
	// reset begins a piece of a file. It reads nothing.
	reset(*source, Piece)
	// Read returns io.EOF at the end of the content, never io.ErrUnexpectedEOF.
	Read(p []byte) (int, error)
	close()
}

// source is the compressed file, from the beginning of a piece.
type source struct {
	*bufio.Reader
	raw     io.Reader
	at      int64 // offset in the file of the bytes that are not in the buffer
	stored  int64 // bytes read
	rawFail error // of raw
}

func (s *source) offset() int64 { return s.at - int64(s.Buffered()) }

// counted is the source below its buffer.
type counted struct{ *source }

func (c counted) Read(p []byte) (int, error) {
	n, err := c.raw.Read(p)
	c.at += int64(n)
	c.stored += int64(n)
	if err == io.ErrUnexpectedEOF { // not the end of the content
		err = fmt.Errorf("offset %d of the compressed file: %w", c.at, err)
	}
	if err != nil && err != io.EOF {
		c.rawFail = err
	}
	return n, err
}

// NewReader returns a reader without a file: call Reset first.
func (c *Codec) NewReader() *Reader {
	r := &Reader{codec: c, decoder: c.decoder()}
	r.source.Reader = bufio.NewReaderSize(nil, bufferSize)
	return r
}

// Reset begins a piece of a file. raw reads the file from the piece's beginning to the end of the
// file, because the content of the next piece may be needed too.
func (r *Reader) Reset(raw io.Reader, p Piece) {
	r.content, r.err = 0, nil
	buffer := r.source.Reader
	r.source = source{Reader: buffer, raw: raw, at: p.From}
	buffer.Reset(counted{&r.source})
	r.decoder.reset(&r.source, p)
}

// Read returns io.EOF at the end of the content. Where the content ends before it should, the error
// is an [Error] with ErrTruncated.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.decoder.Read(p)
	r.content += int64(n)
	if err == nil && r.MaxRatio > 0 && r.content > freeContent && r.content/r.MaxRatio > r.source.stored {
		err = fmt.Errorf("%w: %d bytes have become %d, more than %d for each", ErrRatio, r.source.stored, r.content, r.MaxRatio)
	}
	switch {
	case err == nil, err == io.EOF:
		r.err = err
	case r.source.rawFail != nil:
		r.err = r.source.rawFail
	default:
		r.err = r.inFile(err)
	}
	return n, r.err
}

// inFile returns an Error. A decoder's own Error has its position, but not the codec.
func (r *Reader) inFile(err error) error {
	e, ok := err.(*Error)
	if !ok {
		e = &Error{Offset: r.source.offset(), Err: err}
	}
	e.Codec = r.codec
	for _, kind := range []error{ErrTruncated, ErrFormat, ErrRatio} {
		if errors.Is(e.Err, kind) {
			return e
		}
	}
	e.Err = fmt.Errorf("%w: %w", ErrDamaged, e.Err)
	return e
}

// positioned is a decoder that can begin in the middle of a file.
type positioned interface {
	first() bool
	end() int64
}

// First reports whether the content read so far begins with the file's content. Call it after the first Read.
func (r *Reader) First() bool {
	d, ok := r.decoder.(positioned)
	return !ok || d.first()
}

// End returns how much content the piece has. It returns math.MaxInt64 until a Read has returned
// content of the next piece, which follows.
func (r *Reader) End() int64 {
	if d, ok := r.decoder.(positioned); ok {
		return d.end()
	}
	return math.MaxInt64
}

// Close frees the reader's memory.
func (r *Reader) Close() { r.decoder.close() }
