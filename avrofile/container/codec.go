package container

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"

	"github.com/quernmr/quern/compression"
)

// Codecs returns the names of the codecs.
func Codecs() []string { return []string{"null", "deflate", "snappy", "zstandard", "bzip2"} }

// ErrCodec returns the error of a codec that is none of them.
func ErrCodec(name string) error {
	return fmt.Errorf("unknown codec %.80q; there are %s", name, strings.Join(Codecs(), ", "))
}

// codec decompresses blocks. Content is valid until the next call.
type codec interface {
	decompress(stored []byte, limit int64) ([]byte, error)
	close()
}

func codecOf(name string) (codec, error) {
	switch name {
	case "null":
		return plain{}, nil
	case "deflate":
		return &stream{reset: new(deflate).reset}, nil
	case "snappy":
		return &snappyBlocks{}, nil
	case "zstandard":
		return packed("zstd")
	case "bzip2":
		return packed("bzip2")
	}
	return nil, ErrCodec(name)
}

type plain struct{}

func (plain) decompress(stored []byte, _ int64) ([]byte, error) { return stored, nil }
func (plain) close()                                            {}

// snappyBlocks has blocks with a big-endian CRC-32 of the content after them.
type snappyBlocks struct{ content []byte }

func (s *snappyBlocks) decompress(stored []byte, limit int64) ([]byte, error) {
	if len(stored) < crc32.Size {
		return nil, errors.New("it has no CRC")
	}
	body, sum := stored[:len(stored)-crc32.Size], stored[len(stored)-crc32.Size:]
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	limit = min(limit, 22*int64(len(stored))+64) // a block claims any length, but 3 bytes become 64 at most
	if int64(n) > limit {
		return nil, errLarge(limit)
	}
	s.content, err = snappy.Decode(s.content[:cap(s.content)], body)
	if err == nil && crc32.ChecksumIEEE(s.content) != binary.BigEndian.Uint32(sum) {
		err = errors.New("its CRC is wrong")
	}
	return s.content, err
}

func (*snappyBlocks) close() {}

func errLarge(limit int64) error { return fmt.Errorf("it becomes larger than %d bytes", limit) }

// stream decompresses blocks by a reader.
type stream struct {
	reset   func(io.Reader) io.Reader
	content bytes.Buffer
	closed  func()
}

// packed returns the codec with a name of package compression.
func packed(name string) (codec, error) {
	c, err := compression.Named(name)
	if err != nil {
		return nil, err
	}
	r := c.NewReader()
	return &stream{closed: r.Close, reset: func(from io.Reader) io.Reader {
		r.Reset(from, compression.Whole)
		return r
	}}, nil
}

// deflate is one reader for all blocks.
type deflate struct{ r io.ReadCloser }

func (d *deflate) reset(from io.Reader) io.Reader {
	if d.r == nil {
		d.r = flate.NewReader(from)
	} else if err := d.r.(flate.Resetter).Reset(from, nil); err != nil {
		panic(err) // it has no dictionary
	}
	return d.r
}

func (s *stream) decompress(stored []byte, limit int64) ([]byte, error) {
	s.content.Reset()
	n, err := s.content.ReadFrom(io.LimitReader(s.reset(bytes.NewReader(stored)), limit+1))
	if err == nil && n > limit {
		err = errLarge(limit)
	}
	return s.content.Bytes(), err
}

func (s *stream) close() {
	if s.closed != nil {
		s.closed()
	}
}
