package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const maxInFlight = 64 // packets without acknowledgement, less than the 80 of Hadoop's client

// blockStream writes a block to the first of its DataNodes, which passes it on to the next one.
// One goroutine sends packets; another one, acknowledged, reads the acknowledgements: one for
// each packet, in the same order, with a status of each replica.
type blockStream struct {
	conn   net.Conn
	sent   chan int64    // numbers of packets without acknowledgement
	ended  chan struct{} // closed when no more acknowledgements are read
	err    error         // of an acknowledgement; valid once ended is closed
	number int64         // of the next packet
	offset int64         // of the next byte in the block
	closed bool          // sent is closed
}

// replicaError is an acknowledgement that reports a failure.
type replicaError struct {
	replica int // index of the DataNode
	status  string
}

func (e *replicaError) Error() string {
	return fmt.Sprintf("replica %d was not written: %s", e.replica+1, e.status)
}

// openBlock asks the DataNodes of a new block to receive it.
func openBlock(c *cluster, block proto.Message, dial dialFunc) (*blockStream, error) {
	nodes := parts(block, "locs")
	if len(nodes) == 0 {
		return nil, errors.New("the NameNode names no DataNode for a block")
	}
	conn, err := dial(context.Background(), "tcp", c.dataAddr(nodes[0]))
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	if err := requestBlock(c, block, nodes, conn, in); err != nil {
		conn.Close()
		return nil, err
	}
	s := &blockStream{conn: conn, sent: make(chan int64, maxInFlight), ended: make(chan struct{})}
	go s.acknowledged(in)
	return s, nil
}

func requestBlock(c *cluster, block proto.Message, nodes []proto.Message, conn net.Conn, in *bufio.Reader) error {
	b := part(block, "b")
	var token any
	if has(block, "blockToken") {
		token = part(block, "blockToken")
	}
	base := message("BaseHeader", "block", b, "token", token)
	const createStage, crc32c = 6, 2 // PIPELINE_SETUP_CREATE, CHECKSUM_CRC32C
	request, err := proto.Marshal(message("OpWriteBlock", "header", message("ClientOperationHeader", "baseHeader", base, "clientName", c.name),
		"targets", nodes[1:], "stage", protoreflect.EnumNumber(createStage), "pipelineSize", uint32(len(nodes)),
		"minBytesRcvd", field(b, "numBytes").Uint(), "maxBytesRcvd", uint64(0), "latestGenerationStamp", uint64(0),
		"requestedChecksum", message("Checksum", "type", protoreflect.EnumNumber(crc32c), "bytesPerChecksum", uint32(chunkSize))))
	if err != nil {
		return err
	}
	if _, err := conn.Write(protowire.AppendBytes(bytes.Clone(writeOp), request)); err != nil {
		return err
	}
	answer := message("BlockOpResponse")
	if err := readMessage(in, answer); err != nil {
		return err
	}
	if status := field(answer, "status").Enum(); status != 0 {
		return fmt.Errorf("it refuses a block: %s %s", statusName(status), field(answer, "message").String())
	}
	return nil
}

// statusName returns Hadoop's name of a status.
func statusName(n protoreflect.EnumNumber) string {
	names := message("BlockOpResponse").ProtoReflect().Descriptor().Fields().ByName("status").Enum().Values()
	if v := names.ByNumber(n); v != nil {
		return string(v.Name())
	}
	return fmt.Sprintf("status %d", n)
}

// readMessage reads a message of a DataNode: its length as a varint, then that many bytes.
func readMessage(in *bufio.Reader, m proto.Message) error {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return err
	}
	if size > maxResponse {
		return errMalformed
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return err
	}
	if err := proto.Unmarshal(text, m); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

// acknowledged reads acknowledgements until the block is closed, or one of them reports a failure.
func (s *blockStream) acknowledged(in *bufio.Reader) {
	defer close(s.ended)
	ack := message("PipelineAck")
	for number := range s.sent {
		if s.err = nextAck(in, ack, number); s.err != nil {
			return
		}
	}
}

// nextAck reads the acknowledgement of a packet, and those of heartbeats before it.
func nextAck(in *bufio.Reader, ack proto.Message, number int64) error {
	for {
		if err := readMessage(in, ack); err != nil {
			return err
		}
		replies := field(ack, "reply").List()
		for i := range replies.Len() {
			if status := replies.Get(i).Enum(); status != 0 {
				return &replicaError{i, statusName(status)}
			}
		}
		switch n := field(ack, "seqno").Int(); n {
		case number:
			return nil
		case heartbeatNumber:
		default:
			return fmt.Errorf("%w: packet %d is acknowledged instead of %d", errMalformed, n, number)
		}
	}
}

// send sends the block's next packet, which it seals unless it was sent before.
func (s *blockStream) send(p *packet) error {
	if p.start == 0 {
		p.seal(s.number, s.offset)
	}
	if err := s.sendNext(p.sealed()); err != nil {
		return err
	}
	s.offset += int64(p.size)
	return nil
}

func (s *blockStream) sendNext(sealed []byte) error {
	select {
	case s.sent <- s.number:
	case <-s.ended:
		return s.err
	}
	s.number++
	return s.write(sealed)
}

// heartbeat keeps the connection open. DataNodes acknowledge it, too.
func (s *blockStream) heartbeat() error {
	return s.write(appendHeader(nil, heartbeatNumber, 0, 0, 0))
}

// write returns the failed acknowledgement if that is why the DataNode has closed the connection.
func (s *blockStream) write(sealed []byte) error {
	_, err := s.conn.Write(sealed)
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.conn.Close() // otherwise the connection is broken, and reading ends by itself
	}
	s.drain()
	if failed, ok := errors.AsType[*replicaError](s.err); ok {
		return failed
	}
	return err
}

// drain waits for the remaining acknowledgements.
func (s *blockStream) drain() {
	if !s.closed {
		s.closed = true
		close(s.sent)
	}
	<-s.ended
}

// finish ends the block, and waits until all replicas have it.
func (s *blockStream) finish() error {
	if err := s.sendNext(appendHeader(nil, s.number, s.offset, 0, 0)); err != nil {
		s.abort()
		return err
	}
	s.drain()
	s.conn.Close()
	return s.err
}

// abort closes the connection without an end of the block. It may be called again.
func (s *blockStream) abort() {
	s.conn.Close()
	s.drain()
}
