package sequencefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/sequencefile/writable"
)

// readSize is the size of one read of a file.
const readSize = 256 << 10

// cursor reads a file in order. The memory that it returns is never written again.
type cursor struct {
	file   io.ReaderAt
	size   int64
	at     int64  // offset of part in the file
	part   []byte // of the file
	next   int    // index in part
	failed error  // of reading the file
}

func (c *cursor) offset() int64 { return c.at + int64(c.next) }

func (c *cursor) seek(offset int64) {
	if offset < c.at || offset > c.at+int64(len(c.part)) {
		c.at, c.part = offset, nil
	}
	c.next = int(offset - c.at)
}

// fill reads on until the next n bytes are in memory, if the file has them.
func (c *cursor) fill(n int) error {
	rest := c.part[c.next:]
	if len(rest) >= n {
		return nil
	}
	left := c.size - c.offset()
	if int64(n) > left {
		return ErrTruncated
	}
	part := make([]byte, min(max(int64(n), readSize), left))
	copy(part, rest)
	got, err := c.file.ReadAt(part[len(rest):], c.offset()+int64(len(rest)))
	switch {
	case len(rest)+got == len(part):
	case errors.Is(err, io.EOF):
		return ErrTruncated // since its size was determined
	default:
		c.failed = err
		return err
	}
	c.at, c.part, c.next = c.offset(), part, 0
	return nil
}

// take returns the next n bytes.
func (c *cursor) take(n int) ([]byte, error) {
	if err := c.fill(n); err != nil {
		return nil, err
	}
	c.next += n
	return c.part[c.next-n : c.next : c.next], nil
}

func (c *cursor) int32() (int32, error) {
	b, err := c.take(4)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b)), nil
}

func (c *cursor) flag() (bool, error) {
	b, err := c.take(1)
	return err == nil && b[0] != 0, err
}

// length reads a vint from 0 to limit.
func (c *cursor) length(limit int64) (int, error) {
	if err := c.fill(1); err != nil {
		return 0, err
	}
	b, err := c.take(writable.VLongSize(c.part[c.next]))
	if err != nil {
		return 0, err
	}
	n, err := writable.VLong.Value(b)
	if err == nil && (n < 0 || n > limit) {
		err = fmt.Errorf("%w: a length of %d, at most %d are possible", ErrDamaged, n, limit)
	}
	return int(n), err
}

// maxText limits the texts of a header.
const maxText = 1 << 20

func (c *cursor) text() (string, error) {
	n, err := c.length(maxText)
	if err != nil {
		return "", err
	}
	b, err := c.take(n)
	return string(b), err
}
