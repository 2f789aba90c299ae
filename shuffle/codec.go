package shuffle

import (
	"fmt"
	"math"
)

// Codec packs blocks of map output, for less to write and to fetch. It may be used by
// several goroutines at once. Records larger than a block are not packed, nor is a block
// that would become no smaller.
type Codec interface {
	// Pack appends a block to dst. Of equal blocks it makes equal bytes.
	Pack(dst, block []byte) []byte
	// Unpack appends to dst the block that Pack was given, which has most bytes or fewer.
	Unpack(dst, packed []byte, most int) ([]byte, error)
}

// namedCodec is a codec as jobs choose it, and as packed blocks name it.
type namedCodec struct {
	name   string
	number byte // for ever: it is in files
	Codec
}

// codecs are those that a job can choose; without any its blocks are as they are.
var codecs = []namedCodec{}

// CodecNames lists what [Config.Codec] can be.
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

// mostRecords is no less than the records that so many bytes of blocks can have.
func mostRecords(length int64) int64 {
	if len(codecs) == 0 {
		return length
	}
	return min(length, math.MaxInt64/blockTarget) * blockTarget
}

// pack packs the open block, behind the codec's number, unless that makes it no smaller.
func (w *segmentWriter) pack() (packed bool) {
	if w.codec == nil {
		return false
	}
	start := w.open + blockHeader
	w.packed = w.codec.Pack(append(w.packed[:0], w.codec.number), w.buf[start:])
	if len(w.packed) >= len(w.buf)-start {
		return false
	}
	w.buf = append(w.buf[:start], w.packed...)
	return true
}

// unpack gives the records of a packed block, in dst if they fit.
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
