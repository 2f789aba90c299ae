package sasl

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rc4"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
)

// Frames seals and opens the frames of DIGEST-MD5, without their lengths.
type Frames struct {
	seal, open       hash.Hash
	encrypt, decrypt *rc4.Cipher // nil at Integrity
	sealed, opened   uint32      // numbers of frames
}

const (
	macBytes    = 10
	frameTail   = macBytes + 2 + 4
	maxSealed   = 64<<10 - frameTail // bytes of a message that is sent: servers take 64 KiB by default
	maxFrame    = 32 << 20           // bytes of a frame that is received: a packet has at most 16 MiB
	frameBuffer = 64 << 10
)

var errFrame = errors.New("a message was changed on the way, or is out of order")

func mac(h hash.Hash, number uint32, message []byte) []byte {
	h.Reset()
	h.Write(binary.BigEndian.AppendUint32(nil, number))
	h.Write(message)
	return h.Sum(nil)[:macBytes]
}

// Seal appends a message's frame to b.
func (f *Frames) Seal(b, message []byte) []byte {
	begin := len(b)
	b = append(b, message...)
	b = append(b, mac(f.seal, f.sealed, message)...)
	if f.encrypt != nil {
		f.encrypt.XORKeyStream(b[begin:], b[begin:])
	}
	b = append(b, 0, 1)
	b = binary.BigEndian.AppendUint32(b, f.sealed)
	f.sealed++
	return b
}

// Open returns the message of the next frame, in place.
func (f *Frames) Open(frame []byte) ([]byte, error) {
	if len(frame) < frameTail {
		return nil, errFrame
	}
	body, tail := frame[:len(frame)-6], frame[len(frame)-6:]
	if f.decrypt != nil {
		f.decrypt.XORKeyStream(body, body)
	}
	message, sum := body[:len(body)-macBytes], body[len(body)-macBytes:]
	want := binary.BigEndian.AppendUint32([]byte{0, 1}, f.opened)
	if !hmac.Equal(mac(f.open, f.opened, message), sum) || string(tail) != string(want) {
		return nil, errFrame
	}
	f.opened++
	return message, nil
}

// conn seals and opens the messages of a connection. One goroutine may read while another one
// writes.
type conn struct {
	net.Conn
	frames *Frames
	in     *bufio.Reader
	frame  []byte // buffer
	ready  []byte // opened and not yet read, in frame
	out    []byte // buffer
}

// Conn returns a connection that seals what is written and opens what is read.
func (f *Frames) Conn(raw net.Conn) net.Conn {
	return &conn{Conn: raw, frames: f, in: bufio.NewReaderSize(raw, frameBuffer)}
}

// Read returns what is left of the last frame. It reads another one only if nothing is left.
func (c *conn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

func (c *conn) next() error {
	var length [4]byte
	if _, err := io.ReadFull(c.in, length[:]); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes, want at most %d", n, maxFrame)
	}
	if n > cap(c.frame) {
		c.frame = make([]byte, n)
	}
	if _, err := io.ReadFull(c.in, c.frame[:n]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	var err error
	c.ready, err = c.frames.Open(c.frame[:n])
	return err
}

func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		message := p[n:min(len(p), n+maxSealed)]
		c.out = c.frames.Seal(append(c.out[:0], 0, 0, 0, 0), message)
		binary.BigEndian.PutUint32(c.out, uint32(len(c.out)-4))
		if _, err := c.Conn.Write(c.out); err != nil {
			return n, err
		}
		n += len(message)
	}
	return n, nil
}

// AES are the keys of a connection in counter mode; In and Out as the server sees them.
type AES struct{ InKey, InIV, OutKey, OutIV []byte }

// aesConn encrypts a connection with AES.
type aesConn struct {
	net.Conn
	encrypt, decrypt cipher.Stream
	out              []byte // buffer
}

// Conn returns a connection that encrypts what is written and decrypts what is read.
func (a AES) Conn(raw net.Conn) (net.Conn, error) {
	stream := func(key, iv []byte) (cipher.Stream, error) {
		block, err := aes.NewCipher(key)
		if err == nil && len(iv) != aes.BlockSize {
			err = fmt.Errorf("an AES counter of %d bytes", len(iv))
		}
		if err != nil {
			return nil, err
		}
		return cipher.NewCTR(block, iv), nil
	}
	encrypt, err := stream(a.InKey, a.InIV)
	if err != nil {
		return nil, err
	}
	decrypt, err := stream(a.OutKey, a.OutIV)
	return &aesConn{Conn: raw, encrypt: encrypt, decrypt: decrypt}, err
}

func (c *aesConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.decrypt.XORKeyStream(p[:n], p[:n])
	return n, err
}

// Write encrypts into a buffer of its own: a writer must not change p.
func (c *aesConn) Write(p []byte) (int, error) {
	if len(p) > cap(c.out) {
		c.out = make([]byte, len(p))
	}
	c.encrypt.XORKeyStream(c.out[:len(p)], p)
	return c.Conn.Write(c.out[:len(p)])
}
