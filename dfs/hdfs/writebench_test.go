package hdfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// BenchmarkWrite measures a writer of a file of 128 MiB. The DataNode is a goroutine behind a socket that acknowledges
// packets without a look at them.
func BenchmarkWrite(b *testing.B) {
	const size, piece = 128 << 20, 256 << 10
	node, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close()
	go func() {
		for conn, err := node.Accept(); err == nil; conn, err = node.Accept() {
			go acknowledgeAll(conn)
		}
	}()
	h := &fakeHDFS{nodes: 1}
	f, c := newFakeHDFS(b, h, Conf{"dfs.blocksize": "64m"})
	c.connectFrom = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, node.Addr().String())
	}
	content := pattern(piece)
	b.SetBytes(size)
	for b.Loop() {
		w, err := f.Create("hdfs://nn/f")
		for n := 0; n < size && err == nil; n += piece {
			_, err = w.Write(content)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// acknowledgeAll receives a block and keeps nothing of it.
func acknowledgeAll(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 256<<10)
	_, _ = in.Discard(len(writeOp))
	if readMessage(in, message("OpWriteBlock")) != nil {
		return
	}
	answer, err := proto.Marshal(message("BlockOpResponse", "status", protoreflect.EnumNumber(0), "firstBadLink", ""))
	for last := false; err == nil && !last; {
		_, err = conn.Write(protowire.AppendBytes(nil, answer))
		head, peekErr := in.Peek(packetHeader)
		if peekErr != nil {
			return
		}
		size, number := packetOf(head)
		last = size == 4
		answer = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), protowire.EncodeZigZag(number))
		answer = protowire.AppendVarint(protowire.AppendTag(answer, 2, protowire.VarintType), 0)
		if _, e := in.Discard(packetHeader - 4 + size); e != nil {
			return
		}
	}
	_, _ = conn.Write(protowire.AppendBytes(nil, answer))
	_, _ = io.Copy(io.Discard, in)
}

// packetOf returns a packet's length and number.
func packetOf(head []byte) (size int, number int64) {
	return int(binary.BigEndian.Uint32(head)), int64(binary.LittleEndian.Uint64(head[6+10:]))
}
