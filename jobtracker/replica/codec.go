package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// checkedCodec is raft-wal's form of an entry and a checksum.
type checkedCodec struct{ wal.BinaryCodec }

// codecID is in the header of each segment; another form gets another number.
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

// checkedBody is what the checksum at the end of data is of.
func checkedBody(data []byte) ([]byte, error) {
	n := len(data) - crc32.Size
	if n < 0 || crc32.Checksum(data[:n], crcTable) != binary.LittleEndian.Uint32(data[n:]) {
		return nil, errChecksum
	}
	return data[:n], nil
}

// metaStore and filer write the codec's number down: raft-wal 0.4.0 notes its own
// one for a new segment, whatever codec it was given, and refuses it when it opens.
type metaStore struct {
	metadb.BoltMetaDB
	fault func() error // in tests
}

// SetStable implements types.MetaStore.
func (m *metaStore) SetStable(key, value []byte) error {
	if m.fault != nil {
		if err := m.fault(); err != nil {
			return err
		}
	}
	return m.BoltMetaDB.SetStable(key, value)
}

// CommitState implements types.MetaStore.
func (m *metaStore) CommitState(state types.PersistentState) error {
	for i := range state.Segments {
		state.Segments[i].Codec = codecID
	}
	return m.BoltMetaDB.CommitState(state)
}

type filer struct {
	*segment.Filer
	dir string
}

// Create implements types.SegmentFiler.
func (f filer) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = codecID
	return f.Filer.Create(info)
}
