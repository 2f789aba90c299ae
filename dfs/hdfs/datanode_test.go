package hdfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/internal/membound"
)

// response makes a DataNode's successful response to a reader.
func response(t testing.TB, kind protoreflect.EnumNumber, chunk uint32) []byte {
	t.Helper()
	sum := message("Checksum", "type", kind, "bytesPerChecksum", chunk)
	info := message("ReadOpChecksumInfo", "checksum", sum, "chunkOffset", uint64(0))
	body, err := proto.Marshal(message("BlockOpResponse", "status", protoreflect.EnumNumber(0), "readOpChecksumInfo", info))
	if err != nil {
		t.Fatal(err)
	}
	return append(protowire.AppendVarint(nil, uint64(len(body))), body...)
}

func inPacket(t testing.TB, data []byte, chunk int, table *crc32.Table) []byte {
	t.Helper()
	var sums []byte
	for rest := data; len(rest) > 0 && table != nil; rest = rest[min(chunk, len(rest)):] {
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(rest[:min(chunk, len(rest))], table))
	}
	header, err := proto.Marshal(message("PacketHeader", "offsetInBlock", int64(0), "seqno", int64(1), "lastPacketInBlock", false, "dataLen", int32(len(data))))
	if err != nil {
		t.Fatal(err)
	}
	p := binary.BigEndian.AppendUint32(nil, uint32(4+len(sums)+len(data)))
	p = binary.BigEndian.AppendUint16(p, uint16(len(header)))
	return bytes.Join([][]byte{p, header, sums, data}, nil)
}

// readThrough sends bytes to a dataConn that reads a block, and returns the bytes that its
// reader gets.
func readThrough(sent []byte) ([]byte, error) {
	client, server := net.Pipe()
	go func() {
		io.ReadFull(server, make([]byte, 4))
		server.Write(sent)
		server.Close()
	}()
	defer client.Close()
	open := func(raw net.Conn, _ proto.Message) (net.Conn, error) { return raw, nil }
	c := newDataConn(client, "dn:1", time.Minute, open)
	if _, err := c.Write(append(bytes.Clone(readOp), 0)); err != nil {
		return nil, err
	}
	return io.ReadAll(c)
}

// TestPacketsAreVerified checks that readers get whole packets without their checksums, and
// no part of a damaged packet.
func TestPacketsAreVerified(t *testing.T) {
	data := bytes.Repeat([]byte("quern"), 30_000)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for kind, table := range map[protoreflect.EnumNumber]*crc32.Table{0: nil, 1: crc32.IEEETable, 2: castagnoli} {
		good := append(response(t, kind, 512), inPacket(t, data[:65_536], 512, table)...)
		all := append(bytes.Clone(good), inPacket(t, data, 512, table)...)
		all = append(all, inPacket(t, nil, 512, table)...)
		first := append(response(t, 0, 512), inPacket(t, data[:65_536], 512, nil)...)
		plain := append(append(bytes.Clone(first), inPacket(t, data, 512, nil)...), inPacket(t, nil, 512, nil)...)
		got, err := readThrough(all)
		if !bytes.Equal(got, plain) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("checksum %d: %d of %d bytes, %v", kind, len(got), len(plain), err)
		}
		if got, _ := readThrough(all[:len(good)+1000]); !bytes.Equal(got, first) {
			t.Errorf("checksum %d: a part of a packet passed: %d bytes, want %d", kind, len(got), len(first))
		}
		if table == nil {
			continue
		}
		for _, flip := range []int{len(good) + 40, len(good) + 100_000, len(all) - 1000} {
			bad := bytes.Clone(all)
			bad[flip] ^= 1
			if got, err := readThrough(bad); !bytes.Equal(got, first) || !errors.Is(err, errChecksum) {
				t.Errorf("checksum %d: with a bit flipped at %d: %d bytes, %v", kind, flip, len(got), err)
			}
		}
	}
}

// TestLongPacket checks that the length of a packet is refused before its bytes are awaited.
func TestLongPacket(t *testing.T) {
	for size, want := range map[uint32]error{maxPacket: io.ErrUnexpectedEOF, maxPacket + 1: errMalformed, 1 << 31: errMalformed} {
		sent := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(response(t, 2, 512), 4+size), 25)
		if _, err := readThrough(sent); !errors.Is(err, want) {
			t.Errorf("a packet of %d bytes: %v, want %v", size, err, want)
		}
	}
}

// FuzzPackets checks that reading any bytes of a DataNode takes bounded memory and ends.
func FuzzPackets(f *testing.F) {
	good := append(response(f, 2, 512), inPacket(f, []byte("some data"), 512, crc32.MakeTable(crc32.Castagnoli))...)
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, sent []byte) {
		var got []byte
		var err error
		membound.Bound{Free: 64 << 20, PerByte: 64}.Check(t, len(sent), func() { got, err = readThrough(sent) }) // mostly for the largest packet
		if len(got) > len(sent)+maxResponse || err == nil {
			t.Fatalf("%d bytes became %d, %v", len(sent), len(got), err)
		}
	})
}

// TestComplaint checks that the error has the reason for which a NameNode rejects the
// connection.
func TestComplaint(t *testing.T) {
	header := protowire.AppendTag(nil, 4, protowire.BytesType)
	header = protowire.AppendString(header, "org.apache.hadoop.security.AccessControlException")
	header = protowire.AppendTag(header, 5, protowire.BytesType)
	header = protowire.AppendString(header, "SIMPLE authentication is not enabled.\n\tat x")
	frame := protowire.AppendBytes(nil, header)
	c := &nameConn{addr: "nn:1"}
	for _, b := range append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...) {
		if err := c.trackFrames([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := c.lastError().Error(), "NameNode nn:1: permission denied: SIMPLE authentication is not enabled."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := c.trackFrames([]byte("HTTP")); !errors.Is(err, errNotNameNode) {
		t.Errorf("an HTTP response: %v", err)
	}
}
