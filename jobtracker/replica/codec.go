package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// checkedCodec encodes an entry in raft-wal's form, with a checksum.
type checkedCodec struct {
	wal.BinaryCodec
	limit int // maximum bytes of an entry to write; 0: no limit
}

// codecID is in the header of each segment. A new format needs a new number.
const codecID = wal.FirstExternalCodecID + 1

var crcTable = crc32.MakeTable(crc32.Castagnoli)

var errChecksum = errors.New("wrong checksum")

// ID implements wal.Codec.
func (checkedCodec) ID() uint64 { return codecID }

// Encode implements wal.Codec.
func (c checkedCodec) Encode(l *raft.Log, w io.Writer) error {
	var buf bytes.Buffer
	if err := c.BinaryCodec.Encode(l, &buf); err != nil {
		return err
	}
	if n := buf.Len() + crc32.Size; c.limit > 0 && n > c.limit {
		return fmt.Errorf("%w: entry %d has %d bytes, at most %d", ErrUnreadable, l.Index, n, c.limit)
	}
	sum := crc32.Checksum(buf.Bytes(), crcTable)
	_, err := w.Write(binary.LittleEndian.AppendUint32(buf.Bytes(), sum))
	return err
}

// Decode implements wal.Codec.
func (c checkedCodec) Decode(data []byte, l *raft.Log) error {
	body, err := checkedBody(data)
	if err != nil {
		return err
	}
	return c.BinaryCodec.Decode(body, l)
}

// checkedBody checks the checksum at the end of data, and returns data without it.
func checkedBody(data []byte) ([]byte, error) {
	n := len(data) - crc32.Size
	if n < 0 || crc32.Checksum(data[:n], crcTable) != binary.LittleEndian.Uint32(data[n:]) {
		return nil, errChecksum
	}
	return data[:n], nil
}
