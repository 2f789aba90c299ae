package gossip

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/wire"
)

// Limits of what memberlist reads: it trusts lengths in streams, and decompresses. Quern's daemons
// send neither user state nor compressed messages.
const (
	perAddress  = 128      // connections of one address; each ends after a message
	maxStream   = 16 << 20 // bytes
	maxMembers  = 1 << 14  // in the state of another daemon; memberlist allocates memory for the number
	maxUserData = memberlist.MetaMaxSize
	maxHead     = 128 // bytes of a stream's label, type and header, beside the label's text
)

// Types of memberlist's messages. Their numbers never change.
const (
	typePushPull = 6
	typeCompound = 7
	typeUser     = 8
	typeCompress = 9
	typeCRC      = 12
	typeLabel    = 244
)

var errRefusedStream = errors.New("a gossip message is refused")

// streamHeader has the lengths in the headers of push-pull and user messages.
type streamHeader struct {
	Nodes        int `msgpack:"Nodes"`
	UserStateLen int `msgpack:"UserStateLen"`
	UserMsgLen   int `msgpack:"UserMsgLen"`
}

// stream is a connection. Its header is checked before memberlist reads it.
type stream struct {
	net.Conn
	in      *bufio.Reader
	left    int // bytes that may still be read
	checked bool
}

func newStream(conn net.Conn) net.Conn {
	return &stream{Conn: conn, in: bufio.NewReader(conn), left: maxStream}
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	if !s.checked {
		if err := checkStream(s.in); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		s.checked = true
	}
	if s.left == 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", errRefusedStream, maxStream)
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// checkStream looks at the beginning of a stream. An encrypted one passes: its sender has the key.
func checkStream(in *bufio.Reader) error {
	head, err := in.Peek(1)
	if err != nil {
		return err
	}
	at := 0 // of the message's type
	if head[0] == typeLabel {
		if head, err = in.Peek(2); err != nil {
			return err
		}
		at = 2 + int(head[1])
	}
	if head, err = in.Peek(at + 1); err != nil {
		return err
	}
	switch head[at] {
	case typeCompress:
		return fmt.Errorf("%w: it is compressed", errRefusedStream)
	case typePushPull, typeUser:
		return checkHeader(in, at+1)
	}
	return nil
}

// checkHeader reads the header at an offset. Its end is not known before.
func checkHeader(in *bufio.Reader, at int) error {
	for n := 1; n <= maxHead; n++ {
		head, err := in.Peek(at + n)
		if err != nil {
			return err
		}
		if head[at]&0xf0 != 0x80 {
			return fmt.Errorf("%w: its header is no map", errRefusedStream)
		}
		var h streamHeader
		if wire.Unmarshal(head[at:], &h) != nil {
			continue // not all of it
		}
		if n := max(h.UserStateLen, h.UserMsgLen); h.Nodes > maxMembers || n > maxUserData {
			return fmt.Errorf("%w: it announces %d members and %d bytes, at most %d and %d", errRefusedStream, h.Nodes, n, maxMembers, maxUserData)
		}
		return nil
	}
	return fmt.Errorf("%w: its header is longer than %d bytes", errRefusedStream, maxHead)
}

// hasCompressed reports whether a packet has a compressed message. An encrypted packet begins with a
// version, which is the type of no compressed message.
func hasCompressed(packet []byte) bool {
	packet, _, err := memberlist.RemoveLabelHeaderFromPacket(packet)
	if err != nil {
		return false // memberlist refuses it
	}
	if len(packet) >= 5 && packet[0] == typeCRC {
		packet = packet[5:]
	}
	return messageHasCompressed(packet)
}

func messageHasCompressed(message []byte) bool {
	if len(message) < 2 || message[0] != typeCompound {
		return len(message) > 0 && message[0] == typeCompress
	}
	lengths, rest := message[2:], []byte(nil)
	n := int(message[1])
	if len(lengths) < 2*n {
		return false // memberlist refuses it
	}
	lengths, rest = lengths[:2*n], lengths[2*n:]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		length := int(lengths[0])<<8 | int(lengths[1])
		if length > len(rest) {
			return false // memberlist drops this part and the next ones
		}
		if messageHasCompressed(rest[:length]) {
			return true
		}
		rest = rest[length:]
	}
	return false
}
