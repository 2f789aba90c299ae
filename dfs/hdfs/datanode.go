package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// dataConn is a connection to a DataNode with deadlines. When a block is read, it returns
// only whole packets with correct checksums, and removes the checksums. The library checks
// them too, but returns the data before the check.
//
// The DataNode sends a response and then packets:
//
//	4 bytes  4 + length of checksums and data
//	2 bytes  length of the header
//	         header, in protobuf
//	         checksums, 4 bytes for each chunk of the data
//	         data
//
// Where DataNodes require authentication, the first request has the block's token for it: the
// request waits until secure has returned a connection on which all that is true.
type dataConn struct {
	net.Conn
	addr string

	timeout time.Duration
	secure  secureFunc

	in          *bufio.Reader
	next        func() error // reads the next bytes into ready; nil: Read returns all bytes unchanged
	requested   bool
	deadlineSet time.Time // when the read deadline was last set

	ready    []byte // verified bytes not yet returned, in the buffer of in
	buffered int    // bytes to discard from the buffer once ready is empty

	sums  *crc32.Table // nil: no checksums
	chunk int

	firstBad string // the DataNode that a response to a writer reports as unreachable
}

const (
	dataBuffer  = 256 << 10
	ackBuffer   = 4 << 10
	maxPacket   = 16 << 20 // as in Hadoop
	maxResponse = 64 << 10
)

var (
	errChecksum  = errors.New("checksum mismatch")
	errMalformed = errors.New("malformed answer")
)

func newDataConn(raw net.Conn, addr string, timeout time.Duration, secure secureFunc) *dataConn {
	c := &dataConn{Conn: raw, addr: addr, timeout: timeout, secure: secure}
	return c
}

// SetDeadline ignores the library's deadline; each read and write has its own.
func (c *dataConn) SetDeadline(time.Time) error { return nil }

// extend moves the read deadline. It does so about once a second, because there are many
// small reads.
func (c *dataConn) extend() error {
	now := time.Now()
	if now.Sub(c.deadlineSet) < min(time.Second, c.timeout/4) {
		return nil
	}
	c.deadlineSet = now
	return c.Conn.SetReadDeadline(now.Add(c.timeout))
}

// dataAddr returns the address at which this process dials a DataNode.
func (c *cluster) dataAddr(node proto.Message) string {
	id := part(node, "id")
	host := field(id, "ipAddr").String()
	if c.byName {
		host = field(id, "hostName").String()
	}
	return net.JoinHostPort(host, fmt.Sprint(field(id, "xferPort").Uint()))
}

var (
	readOp  = []byte{0, 28, 0x51}
	writeOp = []byte{0, 28, 0x50}

	checksumOp = []byte{0, 28, 0x55} // only sent by blockChecksumAt
)

func (c *dataConn) Write(p []byte) (int, error) {
	if !c.requested {
		if err := c.request(p); err != nil {
			return 0, c.withAddr(err)
		}
	}
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, c.withAddr(err)
	}
	n, err := c.Conn.Write(p)
	return n, c.withAddr(err)
}

// request authenticates the connection for its first request, and expects the response.
func (c *dataConn) request(p []byte) error {
	kind, buffer := "", dataBuffer
	switch {
	case bytes.HasPrefix(p, readOp):
		kind, c.next = "OpReadBlock", func() error { return c.response(c.packet) }
	case bytes.HasPrefix(p, writeOp):
		kind, c.next, buffer = "OpWriteBlock", func() error { return c.response(nil) }, ackBuffer
	default:
		return fmt.Errorf("the client library sends an unknown request % x", p[:min(len(p), len(readOp))])
	}
	token, err := requestToken(kind, p[len(readOp):])
	if err != nil {
		return err
	}
	secured, err := c.secure(c.Conn, token)
	if err != nil {
		return err
	}
	c.requested, c.Conn, c.in = true, secured, bufio.NewReaderSize(secured, buffer)
	return nil
}

func (c *dataConn) withAddr(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("DataNode %s: %w", c.addr, err)
}

func (c *dataConn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		if _, err := c.in.Discard(c.buffered); err != nil {
			return 0, c.withAddr(err)
		}
		c.buffered = 0
		if err := c.extend(); err != nil {
			return 0, c.withAddr(err)
		}
		if c.next == nil {
			n, err := c.in.Read(p)
			return n, c.withAddr(err)
		}
		if err := c.next(); err != nil {
			return 0, c.withAddr(err)
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// peek returns the next n bytes, which stay in the buffer.
func (c *dataConn) peek(n int) ([]byte, error) {
	if n > c.in.Size() {
		c.in = bufio.NewReaderSize(c.in, n)
	}
	b, err := c.in.Peek(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// setReady makes b, the next bytes of the buffer, ready.
func (c *dataConn) setReady(b []byte) { c.ready, c.buffered = b, len(b) }

// response reads the DataNode's response to a request: its length as a varint, then that
// many bytes. If it reports success, the function then reads what follows.
func (c *dataConn) response(then func() error) error {
	head := 0
	for head < 4 {
		b, err := c.peek(head + 1)
		if err != nil {
			return err
		}
		head++
		if b[head-1] < 0x80 {
			break
		}
	}
	b, err := c.peek(head)
	if err != nil {
		return err
	}
	size, n := protowire.ConsumeVarint(b)
	if n < 0 || size > maxResponse {
		return errMalformed
	}
	if b, err = c.peek(head + int(size)); err != nil {
		return err
	}
	answer := message("BlockOpResponse")
	if err := proto.Unmarshal(b[head:], answer); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	c.firstBad = field(answer, "firstBadLink").String()
	c.next = nil
	if field(answer, "status").Enum() == 0 && then != nil {
		sum := part(part(answer, "readOpChecksumInfo"), "checksum")
		if c.chunk = int(field(sum, "bytesPerChecksum").Uint()); c.chunk < 1 || c.chunk > maxPacket {
			return errMalformed
		}
		switch field(sum, "type").Enum() {
		case 1:
			c.sums = crc32.IEEETable
		case 2:
			c.sums = crc32.MakeTable(crc32.Castagnoli)
		}
		c.next = then
		return c.withoutSums(answer, sum, len(b))
	}
	c.setReady(b)
	return nil
}

// withoutSums changes the response to announce no checksums, so that the library does not
// expect any, and makes it ready.
func (c *dataConn) withoutSums(answer, sum proto.Message, buffered int) error {
	fd := sum.ProtoReflect().Descriptor().Fields().ByName("type")
	sum.ProtoReflect().Set(fd, value(protoreflect.EnumNumber(0)))
	body, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	c.ready, c.buffered = append(protowire.AppendVarint(nil, uint64(len(body))), body...), buffered
	return nil
}

// packet reads a whole packet and makes it ready if its checksums are correct.
func (c *dataConn) packet() error {
	const fixed = 6
	b, err := c.peek(fixed)
	if err != nil {
		return err
	}
	body := int64(binary.BigEndian.Uint32(b)) - 4
	head := int(binary.BigEndian.Uint16(b[4:]))
	if body < 0 || body > maxPacket {
		return errMalformed
	}
	if b, err = c.peek(fixed + head + int(body)); err != nil {
		return err
	}
	size, ok := dataLength(b[fixed : fixed+head])
	chunks := (size + c.chunk - 1) / c.chunk
	sums := 4 * chunks
	if c.sums == nil {
		sums = 0
	}
	if !ok || size < 0 || size > maxPacket || int64(sums+size) != body {
		return errMalformed
	}
	if c.sums != nil && !c.check(b[fixed+head:fixed+head+sums], b[fixed+head+sums:]) {
		return errChecksum
	}
	// Overwrite the checksums, so that the header directly precedes the data.
	copy(b[sums:], b[:fixed+head])
	binary.BigEndian.PutUint32(b[sums:], uint32(4+size))
	c.ready, c.buffered = b[sums:], len(b)
	return nil
}

func (c *dataConn) check(sums, data []byte) bool {
	for ; len(data) > 0; sums = sums[4:] {
		n := min(c.chunk, len(data))
		if crc32.Checksum(data[:n], c.sums) != binary.BigEndian.Uint32(sums) {
			return false
		}
		data = data[n:]
	}
	return true
}

// dataLength returns the length of the data, field 4 of a packet's header.
func dataLength(header []byte) (int, bool) {
	for len(header) > 0 {
		number, kind, n := protowire.ConsumeTag(header)
		if n < 0 {
			return 0, false
		}
		header = header[n:]
		if number == 4 && kind == protowire.Fixed32Type {
			v, n := protowire.ConsumeFixed32(header)
			return int(int32(v)), n > 0
		}
		if n = protowire.ConsumeFieldValue(number, kind, header); n < 0 {
			return 0, false
		}
		header = header[n:]
	}
	return 0, false
}

// link has an open file's connection to a DataNode. A file has at most one at a time.
type link struct {
	cluster *cluster

	mu     sync.Mutex
	conn   *dataConn
	addr   string  // of the last dial
	failed []error // dial errors since the last call of failures
	ended  bool    // see end
}

func (l *link) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	l.close()
	raw, err := l.cluster.dial(ctx, addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addr = addr
	if err != nil {
		err = fmt.Errorf("DataNode %s: %w", addr, err)
		l.failed = append(l.failed, err)
		return nil, err
	}
	if l.ended {
		raw.Close()
		return nil, net.ErrClosed
	}
	l.conn = newDataConn(raw, addr, l.cluster.fs.options.Timeout, l.cluster.secureData)
	return l.conn, nil
}

// current returns the DataNode that was last dialled.
func (l *link) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// failedNode returns the DataNode that a response named as failed.
func (l *link) failedNode() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.firstBad != "" {
		return l.conn.firstBad
	}
	return ""
}

// failures returns the dial errors since the last call.
func (l *link) failures() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errors.Join(l.failed...)
	l.failed = nil
	return err
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// end closes the connection, and all later ones.
func (l *link) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.close()
}
