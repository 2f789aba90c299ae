package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// Codecs are the names of the codecs that this package reads, for messages.
const Codecs = "UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD and LZ4_RAW"

// ratios are the most bytes that one stored byte of a codec can become. Other codecs have no limit of their own.
var ratios = map[format.CompressionCodec]int64{format.Uncompressed: 1, format.Snappy: 22, format.Gzip: 1040, format.Lz4Raw: 256}

var zstdReader = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

// checkSize refuses a page that would become too large.
func (l Limits) checkSize(codec format.CompressionCodec, stored, size int64) error {
	if most, ok := ratios[codec]; ok && size > most*stored+64 {
		return damaged("a page of %d bytes in %s would become %d bytes, which is impossible", stored, codec, size)
	}
	if size > l.Free && size/l.MaxRatio >= stored {
		return damaged("a page of %d bytes would become %d bytes, more than %d times as many", stored, size, l.MaxRatio)
	}
	return nil
}

// decompress fills dst with the content of src.
func (f *File) decompress(codec format.CompressionCodec, dst, src []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("%s: %v", codec, p)
		}
	}()
	n := 0
	switch codec {
	case format.Uncompressed:
		n = len(src)
		copy(dst, src)
	case format.Snappy:
		if n, err = snappy.DecodedLen(src); err == nil && n == len(dst) {
			_, err = snappy.Decode(dst, src)
		}
	case format.Zstd:
		var out []byte
		out, err = zstdReader().DecodeAll(src, dst[:0:len(dst)])
		n = len(out)
	case format.Lz4Raw:
		if len(dst) > 0 || len(src) > 0 {
			n, err = lz4.UncompressBlock(src, dst)
		}
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(src)); err == nil {
			n, err = readAll(r, dst)
		}
	case format.Brotli:
		n, err = readAll(f.Brotli(bytes.NewReader(src)), dst)
	}
	if err == nil && n != len(dst) {
		err = fmt.Errorf("it has not the %d bytes that its header says", len(dst))
	}
	if err != nil {
		return damaged("%s: %v", codec, err)
	}
	return nil
}

// checkCodec refuses codecs that cannot be read.
func (f *File) checkCodec(codec format.CompressionCodec) error {
	switch {
	case codec == format.LZO || codec == format.Lz4 || codec < 0 || codec > format.Lz4Raw:
		return unsupported("codec %s; there are %s", codec, Codecs)
	case codec == format.Brotli && f.Brotli == nil:
		return unsupported("codec %s in this program; jobs read it", codec)
	}
	return nil
}

// readAll fills dst, and checks that the content ends there.
func readAll(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return n, err
	}
	var more [1]byte
	if m, err := io.ReadFull(r, more[:]); m > 0 || err != io.EOF {
		return n, fmt.Errorf("it has more than %d bytes: %w", len(dst), err)
	}
	return n, nil
}
