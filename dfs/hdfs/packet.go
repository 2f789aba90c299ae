package hdfs

import (
	"encoding/binary"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	chunkSize    = 512 // bytes per checksum, as in Hadoop by default: a file's checksum depends on it
	packetChunks = 128
	packetSize   = packetChunks * chunkSize // data of a full packet
	packetHeader = 4 + 2 + headerSize       // what precedes the checksums
	headerSize   = 9 + 9 + 2 + 5            // fields 1 to 4 of a PacketHeaderProto
	dataStart    = packetHeader + 4*packetChunks

	heartbeatNumber = -1 // number of packets without data that keep a connection open
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packet has bytes of a block and room for what precedes them on the connection, see dataConn.
// The data's place is fixed; a packet with less data has less before it. So the packet is sent
// with one call, and again in the same way if the block is written again.
type packet struct {
	bytes    [dataStart + packetSize]byte
	size     int  // of the data
	start    int  // where the packet begins, once it is sealed
	endBlock bool // the block has no more data
}

// add takes bytes as long as there is room.
func (p *packet) add(b []byte) (n int) {
	n = copy(p.bytes[dataStart+p.size:], b)
	p.size += n
	return n
}

// seal adds the checksums, and the header of packet number n, with the data's offset in the block.
func (p *packet) seal(n, offset int64) {
	chunks := (p.size + chunkSize - 1) / chunkSize
	sums := p.bytes[dataStart-4*chunks : dataStart]
	for data := p.bytes[dataStart : dataStart+p.size]; len(data) > 0; sums = sums[4:] {
		chunk := data[:min(chunkSize, len(data))]
		binary.BigEndian.PutUint32(sums, crc32.Checksum(chunk, castagnoli))
		data = data[len(chunk):]
	}
	p.start = dataStart - 4*chunks - packetHeader
	appendHeader(p.bytes[p.start:p.start], n, offset, chunks, p.size)
}

// appendHeader appends what precedes a packet's checksums. The last packet of a block has no data.
func appendHeader(b []byte, n, offset int64, chunks, size int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(4+4*chunks+size))
	b = binary.BigEndian.AppendUint16(b, headerSize)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 1, protowire.Fixed64Type), uint64(offset))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), uint64(n))
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), protowire.EncodeBool(size == 0 && n != heartbeatNumber))
	return protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), uint32(size))
}

// sealed returns the packet as it is sent.
func (p *packet) sealed() []byte { return p.bytes[p.start : dataStart+p.size] }
