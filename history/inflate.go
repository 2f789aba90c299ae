package history

import (
	"fmt"
	"io"
)

// A file of n bytes may unpack to freeInflated + n·maxRatio bytes. Histories of 100,000
// attempts unpack to 40 to 125 times their size. Without this limit, 250 KB could unpack to MaxRecord.
const (
	freeInflated = 4 << 20
	maxRatio     = 200
)

// counted counts the bytes of a file.
type counted struct {
	in io.Reader
	n  int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// inflated reads unpacked bytes, within the limit.
type inflated struct {
	zip  io.Reader
	file *counted
	n    int64
}

func (i *inflated) Read(p []byte) (int, error) {
	n, err := i.zip.Read(p)
	if i.n += int64(n); i.n > freeInflated+maxRatio*i.file.n {
		return 0, fmt.Errorf("its first %d bytes unpack to more than %d bytes", i.file.n, i.n)
	}
	return n, err
}
