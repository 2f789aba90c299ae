package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
)

// Raft decodes each request of another job tracker, of any length, before it looks at it. In lists, an
// entry of one byte becomes a hundred. So each request is scanned while raft reads it:
//
//	+---------+--------------------+-----------------------------------------+
//	| type u8 | request in msgpack | for a snapshot: as many bytes as "Size" |
//	+---------+--------------------+-----------------------------------------+
//
// A batch of batchEntries entries has less than 300 values. A request may take requestPause, and longer
// only if its bytes come with at least slowestRequest a second. Between requests a connection may be silent, as
// raft keeps some for later. Without TLS, its peer is unknown (package listen) until the first request has
// come, or firstPart of it.
const (
	maxRequestValues = 1000
	maxRequestDepth  = 8
	maxRequestKey    = 64
	requestPause     = time.Minute
	slowestRequest   = 64 << 10
	firstPart        = 64 << 10

	installSnapshot = 2 // raft's type of the request that a snapshot follows
)

var errRequest = errors.New("a request of another job tracker is refused")

// inbound is a connection from another job tracker. Only one goroutine reads it.
type inbound struct {
	net.Conn
	scan  requestScan
	began time.Time // of the last request
	bytes int64     // of the reads with parts of it
}

// Read implements net.Conn.
func (c *inbound) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	inside, begun := c.scan.inside, c.scan.begun
	if err := c.scan.next(p[:n]); err != nil {
		return 0, err
	}
	if c.scan.begun != begun {
		c.began, c.bytes = time.Now(), 0
	}
	c.bytes += int64(n)
	if unknown, ok := c.Conn.(interface{ Known() }); ok && c.scan.begun > 0 && (!c.scan.inside || c.scan.begun > 1 || c.bytes >= firstPart) {
		unknown.Known()
	}
	switch {
	case c.scan.inside:
		extra := time.Duration(float64(c.bytes) / slowestRequest * float64(time.Second))
		c.SetReadDeadline(c.began.Add(requestPause + extra)) // ignore the errors of both: the next read returns them too
	case inside:
		c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// requestScan follows requests through the bytes of a connection.
type requestScan struct {
	begun  int  // number of requests
	inside bool // the last one has not ended
	kind   byte
	values int
	open   []container // from the outside in
	head   []byte      // of a value, as far as it has come
	skip   uint64      // bytes of a value or a snapshot that are still to come
	key    string      // of the outermost map, if its value comes next
	size   uint64      // of the snapshot that follows
}

// container is a list or map with values that are still to come.
type container struct {
	left  uint64
	isMap bool
}

// next scans bytes.
func (s *requestScan) next(p []byte) error {
	for len(p) > 0 {
		switch {
		case s.skip > 0:
			n := min(s.skip, uint64(len(p)))
			s.skip, p = s.skip-n, p[n:]
			if s.skip == 0 {
				s.endIfComplete()
			}
		case !s.inside:
			*s = requestScan{begun: s.begun + 1, inside: true, kind: p[0], open: append(s.open[:0], container{left: 1})}
			p = p[1:]
		default:
			s.head, p = append(s.head, p[0]), p[1:]
			if err := s.value(); err != nil {
				return err
			}
		}
	}
	return nil
}

// value handles a value if its head is complete.
func (s *requestScan) value() error {
	payload, values, isMap, ok := headOf(s.head)
	if !ok {
		return nil
	}
	isKey := len(s.open) == 2 && s.open[1].left%2 == 0
	switch {
	case s.values >= maxRequestValues:
		return fmt.Errorf("%w: it has more than %d values", errRequest, maxRequestValues)
	case len(s.open) == 1 && !isMap:
		return fmt.Errorf("%w: it is no map", errRequest)
	case payload > uint64(maxReadable)+1<<20:
		return fmt.Errorf("%w: a value has %d bytes", errRequest, payload)
	case isKey && (values > 0 || payload > maxRequestKey):
		return fmt.Errorf("%w: the name of a field is too long", errRequest)
	case isKey && uint64(len(s.head)) < uint64(headLength(s.head))+payload:
		return nil // the whole name is read as a head
	}
	s.values++
	s.open[len(s.open)-1].left--
	switch {
	case isKey:
		s.key, payload = string(s.head[headLength(s.head):]), 0
	case len(s.open) == 2 && s.key == "Size":
		s.size = numberOf(s.head)
	}
	s.head = s.head[:0]
	if values > 0 || isMap {
		if len(s.open) == maxRequestDepth {
			return fmt.Errorf("%w: its values are nested deeper than %d", errRequest, maxRequestDepth)
		}
		s.open = append(s.open, container{values, isMap})
	}
	if s.skip = payload; payload == 0 {
		s.endIfComplete()
	}
	return nil
}

// endIfComplete ends the request if all its values have come, and the snapshot after it.
func (s *requestScan) endIfComplete() {
	for len(s.open) > 0 && s.open[len(s.open)-1].left == 0 {
		s.open = s.open[:len(s.open)-1]
	}
	switch {
	case len(s.open) > 0:
	case s.kind == installSnapshot && s.size > 0:
		s.skip, s.size = s.size, 0
	default:
		s.inside = false
	}
}

// headLength returns the bytes of a value's head: its type, and its length if that is not in the type.
func headLength(head []byte) int {
	switch c := head[0]; c {
	case 0xc4, 0xd9:
		return 2
	case 0xc5, 0xda, 0xdc, 0xde:
		return 3
	case 0xc6, 0xdb, 0xdd, 0xdf:
		return 5
	case 0xc7: // an extension has a type after its length
		return 3
	case 0xc8:
		return 4
	case 0xc9:
		return 6
	}
	return 1
}

// headOf returns the bytes and the number of the values that follow a head. Numbers count as heads. It
// returns false if the head is not complete.
func headOf(head []byte) (payload, values uint64, isMap, ok bool) {
	c, n := head[0], headLength(head)
	if len(head) < n {
		return 0, 0, false, false
	}
	var length uint64
	if n > 1 {
		var b [8]byte
		digits := head[1:n]
		if c >= 0xc7 && c <= 0xc9 {
			digits = digits[:n-2]
		}
		copy(b[8-len(digits):], digits)
		length = binary.BigEndian.Uint64(b[:])
	}
	switch {
	case c&0xf0 == 0x80:
		return 0, 2 * uint64(c&0x0f), true, true
	case c&0xf0 == 0x90:
		return 0, uint64(c & 0x0f), false, true
	case c&0xe0 == 0xa0:
		return uint64(c & 0x1f), 0, false, true
	case c == 0xdc || c == 0xdd:
		return 0, length, false, true
	case c == 0xde || c == 0xdf:
		return 0, 2 * length, true, true
	case c >= 0xd4 && c <= 0xd8: // extensions of 1 to 16 bytes, with a type
		return 1 + 1<<(c-0xd4), 0, false, true
	case n > 1:
		return length, 0, false, true
	}
	width := numberWidth(c)
	return 0, 0, false, len(head) >= 1+width
}

// numberWidth returns the bytes of a number after its type.
func numberWidth(c byte) int {
	switch c {
	case 0xcc, 0xd0:
		return 1
	case 0xcd, 0xd1:
		return 2
	case 0xca, 0xce, 0xd2:
		return 4
	case 0xcb, 0xcf, 0xd3:
		return 8
	}
	return 0
}

// numberOf returns a whole number that is not negative; 0 for other values. Raft refuses them.
func numberOf(head []byte) uint64 {
	c, width := head[0], numberWidth(head[0])
	if c <= 0x7f {
		return uint64(c)
	}
	if width == 0 || c == 0xca || c == 0xcb {
		return 0
	}
	var b [8]byte
	copy(b[8-width:], head[1:])
	n := binary.BigEndian.Uint64(b[:])
	if c >= 0xd0 && n>>(8*width-1) == 1 || n>>63 == 1 {
		return 0
	}
	return n
}
