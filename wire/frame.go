// Package wire has the protocol between Quern's processes: ids, messages, frames, and the [Queue]
// in which messages wait for a writer. It has no scheduling and no transport.
//
// A frame:
//
//	+--------------------+----------+----------------------+
//	| length u32, big-e. | number u8| body, length-1 bytes |
//	+--------------------+----------+----------------------+
//
// The body is the message's struct in msgpack, a map keyed by the names in the fields' tags. A
// reader ignores unknown names, and leaves missing fields zero. Numbers and names never change, and
// new ones may be added: testdata/golden/messages.txt has the bytes of each message. Before
// allocating memory, a reader checks the length against [MaxFrame], and the decoded size against a
// multiple of the body's length.
//
// # Tokens
//
// Every job has a token. The job tracker sends it to task trackers in [Launch] and [SetHome], and
// to the job's owner on request. HTTP requests to a task tracker for the job's map outputs or logs
// must include it:
//
//	Authorization: Bearer <token>
//
// Several goroutines may send on a [Conn], but only one may receive.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Version is the version of the protocol between trackers, sent in [Hello]. Version 2 added job
// tokens, which requests for map outputs need. Version 3 has map outputs in blocks. Version 4 has
// digests of submissions, without which nothing is launched.
const Version = 4

// WorkerProtocol is the version of the protocol between a task tracker and a job's program.
// Version 2 has digests of submissions.
const WorkerProtocol = 2

// MaxFrame is the maximum of a frame's length field.
const MaxFrame = 4 << 20

const frameHeader = 5

var (
	// ErrFrameTooLarge reports a frame longer than [MaxFrame], or a length field of 0.
	ErrFrameTooLarge = errors.New("frame length out of bounds")
	// ErrUnknownMessage reports a message number of a later version.
	ErrUnknownMessage = errors.New("unknown message number")
)

// Marshal encodes a struct as a frame's body. It sorts the keys of string maps and of [Counters],
// so that equal values give equal bytes. Messages have no other maps.
func Marshal(v any) ([]byte, error) { return appendBody(nil, v) }

func appendBody(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes(), nil
}

// Unmarshal decodes the output of [Marshal] into a zero value. Before it allocates memory, it
// refuses malformed data with [ErrMalformed], and data that would take far more memory than its size
// with [ErrInflated]. The limit is higher than that of [Read]: files and log entries have short names.
func Unmarshal(data []byte, v any) error { return decode(data, v, memoryPerStoredByte) }

// UnmarshalKnown is [Unmarshal] for data without unknown fields: it refuses fields that v does not
// have with [ErrMalformed].
func UnmarshalKnown(data []byte, v any) error {
	if err := check(data, v, memoryPerStoredByte); err != nil {
		return err
	}
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(bytes.NewReader(data))
	dec.DisallowUnknownFields(true)
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decode %T: %w: %v", v, ErrMalformed, err)
	}
	return nil
}

// check refuses data that must not be decoded into v.
func check(data []byte, v any, perByte int) error {
	err := checkShape(data)
	if err == nil {
		err = checkWeight(data, reflect.TypeOf(v).Elem(), perByte)
	}
	if err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

func decode(data []byte, v any, perByte int) error {
	if err := check(data, v, perByte); err != nil {
		return err
	}
	if err := msgpack.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode %T: %w: %v", v, ErrMalformed, err)
	}
	return nil
}

// Append appends m's frame to dst.
func Append(dst []byte, m Message) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, m.number())
	dst, err := appendBody(dst, m)
	if err != nil {
		return nil, err
	}
	length := len(dst) - start - 4
	if length > MaxFrame {
		return nil, fmt.Errorf("encode %T of %d bytes: %w", m, length, ErrFrameTooLarge)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(length))
	return dst, nil
}

// Read reads one frame. It returns io.EOF if r ends before the frame, and io.ErrUnexpectedEOF if r
// ends within it.
func Read(r io.Reader) (Message, error) {
	m, err := read(r, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// read reads one frame. If want is not nil, the message must have its type.
func read(r io.Reader, want Message) (Message, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length == 0 || length > MaxFrame {
		return nil, fmt.Errorf("%w: %d", ErrFrameTooLarge, length)
	}
	// The buffer grows with the bytes that arrive: a header alone must not allocate MaxFrame bytes.
	var body bytes.Buffer
	if n, err := io.CopyN(&body, r, int64(length-1)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("frame of %d bytes after %d: %w", length, n, err)
	}
	m := newMessage(header[4])
	if m == nil {
		return nil, fmt.Errorf("%w: %d", ErrUnknownMessage, header[4])
	}
	if want != nil && m.number() != want.number() {
		return nil, fmt.Errorf("got a %T where a %T was due", m, want)
	}
	return m, decode(body.Bytes(), m, memoryPerByte)
}

// ReadAs reads one frame that must be a T.
func ReadAs[T Message](r io.Reader) (T, error) {
	var none T
	m, err := read(r, none)
	if err != nil {
		return none, err
	}
	return m.(T), nil
}

// Conn carries messages both ways over a byte stream.
type Conn struct {
	in          io.Reader
	out         io.Writer
	closeStream func() error

	mu  sync.Mutex // guards out and buf
	buf []byte
}

// NewConn makes a Conn that reads from in and writes to out. Close calls end.
func NewConn(in io.Reader, out io.Writer, end func() error) *Conn {
	return &Conn{in: in, out: out, closeStream: end}
}

// Pipe makes two connected Conns within one process. Messages are still encoded.
func Pipe() (a, b *Conn) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	closer := func(r *io.PipeReader, w *io.PipeWriter) func() error {
		return func() error { return errors.Join(r.Close(), w.Close()) }
	}
	return NewConn(ar, aw, closer(ar, aw)), NewConn(br, bw, closer(br, bw))
}

// Send writes one message. It blocks until the stream has taken all of it.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	frame, err := Append(c.buf[:0], m)
	if err != nil {
		return err
	}
	if cap(frame) <= 64<<10 {
		c.buf = frame
	}
	if _, err := c.out.Write(frame); err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

// Receive reads the next message. It returns io.EOF when the other side has closed.
func (c *Conn) Receive() (Message, error) { return Read(c.in) }

// Close ends both directions.
func (c *Conn) Close() error { return c.closeStream() }
