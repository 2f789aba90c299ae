// Package avrofile reads and writes Avro's object container files: blocks of records of one schema, which the
// file names. The library github.com/twmb/avro encodes and decodes records, schemas and blocks.
//
// A file, numbers as in Avro's type long (zigzag, variable length):
//
//	+-------------------+---------------------------------------+-----------------------+
//	| "Obj" and 1       | metadata: a map of bytes, with        | sync: 16 random bytes |
//	|                   | avro.schema and perhaps avro.codec    |                       |
//	+-------------------+---------------------------------------+-----------------------+
//	| block: count of records | size of the content | content, by the codec | sync      |
//	+-------------------------+---------------------+-----------------------+-----------+
//	| more blocks ...                                                                   |
//	+-----------------------------------------------------------------------------------+
//
// Codecs: null (also if the file names none), deflate (without checksum), snappy (with a CRC-32 of the content),
// zstandard and bzip2. Files with xz are refused.
//
// A block belongs to the piece of the file in which the sync mark before it begins. The mark of the header
// counts, too. So pieces of any size have each record once. This is the rule of Avro's DataFileReader.
//
// Only snappy, bzip2 and most zstandard blocks have checksums. A reader notices other damage only if the records do
// not fill their block, or if a sync mark differs. It cannot notice that a file ends after a block. HDFS has its
// own checksums.
//
// Memory follows the bytes that a file has, never a length that it claims. A block may have 256 MiB more than
// a record. A block with more than 4096 records of no bytes, as of the schema "null", is refused.
//
// A Reader is for one goroutine at a time.
package avrofile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro/ocf"

	"github.com/quernmr/quern/compression"
)

// Suffix is that of the files' names.
const Suffix = ".avro"

// DefaultLevel is the level of compression that a codec has by default.
const DefaultLevel = -1

const (
	magic    = "Obj\x01"
	syncSize = 16
)

// Error is an error in a file, with the offset of the header or block that has it.
type Error struct {
	Offset int64
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("Avro file at offset %d: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Codecs returns the names of the codecs.
func Codecs() []string { return []string{"null", "deflate", "snappy", "zstandard", "bzip2"} }

// compressor returns what compresses blocks; nil for the codec null.
func compressor(name string, level int) (ocf.Codec, error) {
	switch name {
	case "null":
		return nil, nil
	case "deflate":
		return ocf.DeflateCodec(level), nil
	case "snappy":
		return ocf.SnappyCodec(), nil
	case "zstandard":
		speed := zstd.SpeedDefault
		if level != DefaultLevel {
			speed = zstd.EncoderLevelFromZstd(level)
		}
		return ocf.ZstdCodec([]zstd.EOption{zstd.WithEncoderLevel(speed)}, nil)
	case "bzip2":
		return newStreams(name, "bzip2")
	}
	return nil, fmt.Errorf("unknown codec %.80q; there are %s", name, strings.Join(Codecs(), ", "))
}

// decompressor returns what decompresses blocks; nil for the codec null.
func decompressor(name string) (ocf.Codec, error) {
	if name == "zstandard" { // the library's takes as much memory as a block claims
		return newStreams(name, "zstd")
	}
	return compressor(name, DefaultLevel)
}

// streams compresses blocks by a codec of package compression.
type streams struct {
	name    string
	codec   *compression.Codec
	reader  *compression.Reader
	content bytes.Buffer // of the block that was decompressed last
}

func newStreams(name, codec string) (ocf.Codec, error) {
	c, err := compression.Named(codec)
	return &streams{name: name, codec: c}, err
}

func (s *streams) Name() string { return s.name }

func (s *streams) Compress(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := s.codec.NewWriter(&packed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// Decompress has the library's contract, but readers call DecompressBounded.
func (s *streams) Decompress(packed []byte) ([]byte, error) {
	return s.DecompressBounded(packed, math.MaxInt64-1)
}

// DecompressBounded returns content that is valid until the next call.
func (s *streams) DecompressBounded(packed []byte, limit int64) ([]byte, error) {
	if s.reader == nil {
		s.reader = s.codec.NewReader()
	}
	s.reader.Reset(bytes.NewReader(packed), compression.Whole)
	s.content.Reset()
	n, err := s.content.ReadFrom(io.LimitReader(s.reader, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("it becomes larger than %d bytes", limit)
	}
	return s.content.Bytes(), err
}

func (s *streams) Close() error {
	if s.reader != nil {
		s.reader.Close()
	}
	return nil
}
