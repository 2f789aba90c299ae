package compression

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// members decodes files of several members: of gzip, or of zlib.
type members struct {
	magic  []byte       // with which each member begins
	begin  func() error // reads a member's header
	member io.Reader    // the open member
	open   bool
	any    bool // a member has begun
	source *source
}

func (m *members) reset(s *source, _ Piece) { m.source, m.open, m.any = s, false, false }

func (m *members) close() {}

func (m *members) Read(p []byte) (int, error) {
	for {
		if !m.open {
			if err := m.next(); err != nil {
				return 0, err
			}
		}
		n, err := m.member.Read(p)
		if err == io.ErrUnexpectedEOF {
			err = ErrTruncated
		}
		if err != io.EOF {
			return n, err
		}
		if m.open = false; n > 0 {
			return n, nil
		}
	}
}

// next begins the next member. It returns io.EOF after the last one.
func (m *members) next() error {
	head, err := m.source.Peek(4)
	switch {
	case len(head) == 0 && err == io.EOF && m.any:
		return io.EOF
	case len(head) == 0 && err == io.EOF:
		return ErrTruncated
	case len(head) == 0:
		return err
	case !bytes.HasPrefix(m.magic, head[:min(len(head), len(m.magic))]):
		return m.foreign(string(head))
	}
	first := string(head)
	switch err := m.begin(); {
	case err == nil:
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return ErrTruncated
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zlib.ErrHeader):
		return m.foreign(first)
	default:
		return err
	}
	m.open, m.any = true, true
	return nil
}

func (m *members) foreign(head string) error {
	if m.any {
		return errMore
	}
	return otherData(head)
}

func newGzipDecoder() decoder {
	z := new(gzip.Reader)
	m := &members{magic: []byte{0x1f, 0x8b}, member: z}
	m.begin = func() error {
		err := z.Reset(m.source.Reader)
		z.Multistream(false)
		return err
	}
	return m
}

func newZlibDecoder() decoder {
	m := &members{}
	m.begin = func() error {
		if z, ok := m.member.(zlib.Resetter); ok {
			return z.Reset(m.source.Reader, nil)
		}
		z, err := zlib.NewReader(m.source.Reader)
		if err == nil {
			m.member = z
		}
		return err
	}
	return m
}

func newGzipWriter(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }

func newZlibWriter(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

// frames decodes zstd's frames.
type frames struct {
	zstd   *zstd.Decoder
	source *source
	begun  bool
}

func newZstdDecoder() decoder { return &frames{} }

func (f *frames) reset(s *source, _ Piece) { f.source, f.begun = s, false }

func (f *frames) close() {
	if f.zstd != nil {
		f.zstd.Close()
		f.zstd = nil
	}
}

func (f *frames) Read(p []byte) (n int, err error) {
	if !f.begun {
		switch head, err := f.source.Peek(8); {
		case len(head) == 0 && err == io.EOF:
			return 0, ErrTruncated
		case errors.Is(new(zstd.Header).Decode(head), zstd.ErrMagicMismatch):
			return 0, otherData(string(head))
		}
		if err = f.begin(); err == io.EOF { // only skippable frames
			return 0, io.EOF
		}
	}
	if err == nil {
		n, err = f.zstd.Read(p)
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = ErrTruncated
	case errors.Is(err, zstd.ErrMagicMismatch):
		err = errMore
	}
	return n, err
}

func (f *frames) begin() (err error) {
	f.begun = true
	if f.zstd != nil {
		return f.zstd.Reset(f.source.Reader)
	}
	f.zstd, err = zstd.NewReader(f.source.Reader, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxBlock))
	return err
}

func newZstdWriter(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
}
