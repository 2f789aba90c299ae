// Package avrofile reads and writes Avro's object container files: blocks of records of one schema, which the
// file names. The library github.com/twmb/avro encodes and decodes records and schemas, and writes blocks.
//
// Package container has the format of files, and limits of what is read.
//
// A Reader is for one goroutine at a time.
package avrofile

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro/ocf"

	"github.com/quernmr/quern/avrofile/container"
	"github.com/quernmr/quern/compression"
)

// Suffix is that of the files' names.
const Suffix = ".avro"

// DefaultLevel is the level of compression that a codec has by default.
const DefaultLevel = -1

// Codecs returns the names of the codecs.
func Codecs() []string { return container.Codecs() }

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
		c, err := compression.Named(name)
		return bzip2Codec{c}, err
	}
	return nil, container.ErrCodec(name)
}

// bzip2Codec compresses blocks by the codec of package compression.
type bzip2Codec struct{ codec *compression.Codec }

func (bzip2Codec) Name() string { return "bzip2" }

func (c bzip2Codec) Compress(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := c.codec.NewWriter(&packed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// Decompress is never called: package container reads blocks.
func (bzip2Codec) Decompress([]byte) ([]byte, error) { panic("avrofile: the writer decompresses") }

func (bzip2Codec) Close() error { return nil }
