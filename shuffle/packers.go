package shuffle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of map output. Blocks have checksums of their own, so no codec adds one.

// flateBlocks packs by deflate, at its highest speed.
type flateBlocks struct{ writers, readers sync.Pool }

func (f *flateBlocks) Pack(dst, block []byte) []byte {
	to := bytes.NewBuffer(dst)
	w, ok := f.writers.Get().(*flate.Writer)
	if !ok {
		w, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is right
	}
	defer f.writers.Put(w)
	w.Reset(to)
	_, err := w.Write(block)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(fmt.Sprintf("deflate to memory: %v", err))
	}
	return to.Bytes()
}

func (f *flateBlocks) Unpack(dst, packed []byte, limit int) ([]byte, error) {
	r, ok := f.readers.Get().(io.ReadCloser)
	if !ok {
		r = flate.NewReader(nil)
	}
	defer f.readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, err
	}
	to := bytes.NewBuffer(dst)
	_, err := to.ReadFrom(io.LimitReader(r, int64(limit)+1))
	return to.Bytes(), err
}

// lz4Blocks packs in LZ4 blocks.
type lz4Blocks struct{ compressors sync.Pool }

func (l *lz4Blocks) Pack(dst, block []byte) []byte {
	c, ok := l.compressors.Get().(*lz4.Compressor)
	if !ok {
		c = new(lz4.Compressor)
	}
	defer l.compressors.Put(c)
	start, bound := len(dst), lz4.CompressBlockBound(len(block))
	dst = append(dst, make([]byte, bound)...)
	n, err := c.CompressBlock(block, dst[start:])
	if err != nil {
		panic(fmt.Sprintf("LZ4 to memory: %v", err))
	}
	return dst[:start+n]
}

func (*lz4Blocks) Unpack(dst, packed []byte, limit int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, limit)...)
	n, err := lz4.UncompressBlock(packed, dst[start:])
	return dst[:start+max(n, 0)], err
}

// snappyBlocks packs in Snappy blocks.
type snappyBlocks struct{}

func (snappyBlocks) Pack(dst, block []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, s2.MaxEncodedLen(len(block)))...)
	return dst[:start+len(s2.EncodeSnappy(dst[start:], block))]
}

func (snappyBlocks) Unpack(dst, packed []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(packed)
	if err == nil && n > limit {
		err = fmt.Errorf("it has %d bytes", n)
	}
	if err != nil {
		return nil, err
	}
	start := len(dst)
	dst = append(dst, make([]byte, n)...)
	block, err := snappy.DecodeStrict(dst[start:], packed)
	return dst[:start+len(block)], err
}

// zstdBlocks packs in zstd frames.
type zstdBlocks struct {
	encoder func() *zstd.Encoder
	decoder func() *zstd.Decoder
}

func newZstdBlocks() zstdBlocks {
	return zstdBlocks{
		encoder: sync.OnceValue(func() *zstd.Encoder {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(blockTarget), zstd.WithLowerEncoderMem(true))
			if err != nil {
				panic(fmt.Sprintf("make a zstd encoder: %v", err))
			}
			return e
		}),
		decoder: sync.OnceValue(func() *zstd.Decoder {
			d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(blockTarget), zstd.WithDecoderLowmem(true))
			if err != nil {
				panic(fmt.Sprintf("make a zstd decoder: %v", err))
			}
			return d
		}),
	}
}

func (z zstdBlocks) Pack(dst, block []byte) []byte { return z.encoder().EncodeAll(block, dst) }

func (z zstdBlocks) Unpack(dst, packed []byte, _ int) ([]byte, error) {
	return z.decoder().DecodeAll(packed, dst)
}
