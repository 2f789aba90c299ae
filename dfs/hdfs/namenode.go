package hdfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

const (
	dialTimeout         = 5 * time.Second
	maxNameNodeResponse = 128 << 20 // bytes; Hadoop's default for ipc.maximum.response.length
	responseHead        = 4 << 10   // bytes kept of each response, for its error
)

// errNotNameNode reports a server with another protocol.
var errNotNameNode = errors.New("this is no NameNode's RPC port")

// nameConn is a connection to a NameNode with deadlines and a limit on the length of
// responses. A failed read closes it: otherwise the next call would take a late response
// for its own.
type nameConn struct {
	net.Conn
	addr    string
	timeout time.Duration

	mu       sync.Mutex
	unread   int64 // unread bytes of the current response
	size     [4]byte
	sizeRead int    // bytes read of size
	head     []byte // beginning of the last response
	lastErr  error  // the first error
}

func (c *nameConn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, c.closeOnError(err)
	}
	n, err := c.Conn.Write(p)
	return n, c.closeOnError(err)
}

func (c *nameConn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, c.closeOnError(err)
	}
	n, err := c.Conn.Read(p)
	if err == nil {
		err = c.trackFrames(p[:n])
	}
	return n, c.closeOnError(err)
}

// trackFrames follows the frames in the bytes that were read. A frame is a length, then
// that many bytes.
func (c *nameConn) trackFrames(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		if c.unread > 0 {
			n := min(int64(len(p)), c.unread)
			c.head = append(c.head, p[:min(n, responseHead-int64(len(c.head)))]...)
			c.unread, p = c.unread-n, p[n:]
			continue
		}
		n := copy(c.size[c.sizeRead:], p)
		c.sizeRead, p = c.sizeRead+n, p[n:]
		if c.sizeRead < len(c.size) {
			return nil
		}
		c.sizeRead, c.unread, c.head = 0, int64(binary.BigEndian.Uint32(c.size[:])), c.head[:0]
		if c.unread > maxNameNodeResponse {
			return fmt.Errorf("%s: %w: it answers %q", c.addr, errNotNameNode, c.size)
		}
	}
	return nil
}

func (c *nameConn) closeOnError(err error) error {
	if err == nil {
		return nil
	}
	c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr == nil {
		c.lastErr = fmt.Errorf("NameNode %s: %w", c.addr, err)
	}
	return c.lastErr
}

// lastError returns the error that made the connection unusable, or nil.
func (c *nameConn) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil {
		return c.lastErr
	}
	return c.rejection()
}

// rejection returns the error in the last response if that response belongs to no call. The
// NameNode sends such a response if it requires another authentication.
func (c *nameConn) rejection() error {
	size, n := protowire.ConsumeVarint(c.head)
	if n < 0 || size > uint64(len(c.head)-n) {
		return nil
	}
	var exception, text string
	for header := c.head[n : n+int(size)]; len(header) > 0; {
		number, kind, n := protowire.ConsumeTag(header)
		if n < 0 {
			return nil
		}
		header = header[n:]
		if n = protowire.ConsumeFieldValue(number, kind, header); n < 0 {
			return nil
		}
		if value, m := protowire.ConsumeString(header); kind == protowire.BytesType && m == n {
			switch number {
			case 4:
				exception = value
			case 5:
				text = value
			}
		}
		header = header[n:]
	}
	if exception == "" {
		return nil
	}
	_, err := classifyResponse(rejected{exception, text})
	return fmt.Errorf("NameNode %s: %w", c.addr, err)
}

// rejected is a response that belongs to no call.
type rejected struct{ exception, message string }

func (c rejected) Method() string    { return "" }
func (c rejected) Desc() string      { return "" }
func (c rejected) Exception() string { return c.exception }
func (c rejected) Message() string   { return c.message }
