package shuffle

import (
	"fmt"
	"math"
)

// Codec packs blocks of map output, to write and fetch fewer bytes. It must be safe for
// concurrent use. Blocks of one large record are not packed, and a block that does not
// become smaller stays as it is.
type Codec interface {
	// Pack appends the packed block to dst. Equal blocks give equal bytes.
	Pack(dst, block []byte) []byte
	// Unpack appends the original block to dst. The block has at most limit bytes.
	Unpack(dst, packed []byte, limit int) ([]byte, error)
}

// namedCodec is a codec with its name in job properties and its number in packed blocks.
type namedCodec struct {
	name   string
	number byte // permanent: files contain it
	Codec
}

// codecs lists the codecs that a job can choose.
var codecs = []namedCodec{
	{"deflate", 1, &flateBlocks{}},
	{"lz4", 2, &lz4Blocks{}},
	{"snappy", 3, snappyBlocks{}},
	{"zstd", 4, newZstdBlocks()},
}

// CodecNames lists the values of [Config.Codec].
func CodecNames() []string {
	names := []string{""}
	for _, c := range codecs {
		names = append(names, c.name)
	}
	return names
}

func codecNamed(name string) (*namedCodec, error) {
	for i := range codecs {
		if codecs[i].name == name {
			return &codecs[i], nil
		}
	}
	if name != "" {
		return nil, fmt.Errorf("codec %q of map output is unknown: want one of %q", name, CodecNames())
	}
	return nil, nil
}

// maxRecords returns an upper bound of the records in blocks of this total length.
func maxRecords(length int64) int64 {
	return min(length, math.MaxInt64/blockTarget) * blockTarget
}

// pack replaces the open block by the codec's number and the packed block, if that is smaller.
func (w *segmentWriter) pack() (packed bool) {
	start := w.open + blockHeader
	if w.chooser != nil {
		w.codec = w.chooser.block(w.buf[start:])
	}
	if w.codec == nil {
		return false
	}
	w.packed = w.codec.Pack(append(w.packed[:0], w.codec.number), w.buf[start:])
	if len(w.packed) >= len(w.buf)-start {
		return false
	}
	w.buf = append(w.buf[:start], w.packed...)
	return true
}

// unpack returns the records of a packed block. It reuses dst.
func unpack(dst, payload []byte, at int64) ([]byte, error) {
	for _, c := range codecs {
		if c.number != payload[0] {
			continue
		}
		block, err := c.Unpack(dst[:0], payload[1:], blockTarget)
		if err == nil && (len(block) == 0 || len(block) > blockTarget) {
			err = fmt.Errorf("it has %d bytes", len(block))
		}
		if err != nil {
			return nil, damaged(at, "unpack block of %d bytes by %s: %v", len(payload), c.name, err)
		}
		return block, nil
	}
	return nil, damaged(at, "block is packed by codec %d, which this build does not know", payload[0])
}
