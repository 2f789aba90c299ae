package streaming

import (
	"bytes"
	"fmt"
	"io"

	"github.com/quernmr/quern/runtime"
)

// lines reads lines that end with LF, CR LF or CR, as Hadoop does. The last one needs no end.
type lines struct {
	from       io.Reader
	max        int    // bytes of a line
	alive      func() // called after each read
	buf        []byte
	start, end int // unread bytes in buf
	scanned    int // bytes after start without LF
	clean      int // bytes after start without CR
	ended      bool
}

const lineBuffer = 256 << 10

func newLines(from io.Reader, max int, alive func()) *lines {
	return &lines{from: from, max: max, alive: alive, buf: make([]byte, lineBuffer)}
}

// next returns the next line without its end, or io.EOF. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		unread := l.buf[l.start:l.end]
		if n := bytes.IndexByte(unread[l.scanned:], '\n'); n >= 0 {
			if l.scanned += n; l.clean < l.scanned {
				l.findCR(unread)
			}
			return l.take(l.scanned, true), nil
		}
		l.scanned = len(unread)
		if l.findCR(unread); l.clean+1 < len(unread) || l.ended && len(unread) > 0 {
			return l.take(len(unread), false), nil // no LF follows a CR, or the last line
		}
		if l.ended {
			return nil, io.EOF
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// findCR moves clean to the next CR, beyond the current line too: most output has none, so that it is searched once.
func (l *lines) findCR(unread []byte) {
	if cr := bytes.IndexByte(unread[l.clean:], '\r'); cr >= 0 {
		l.clean += cr
	} else {
		l.clean = len(unread)
	}
}

// take returns the first line of the next n bytes, which an LF follows or, without fed, the end of what is read. A CR among
// them is at clean.
func (l *lines) take(n int, fed bool) []byte {
	line, after := l.buf[l.start:l.start+n], n
	if fed {
		after++
	}
	if l.clean < n {
		if line = line[:l.clean]; !fed || l.clean+2 != after { // not CR LF
			after = l.clean + 1
		}
	}
	l.start += after
	l.scanned, l.clean = max(l.scanned-after, 0), max(l.clean-after, 0)
	return line
}

func (l *lines) fill() error {
	if l.start > 0 && (l.end == len(l.buf) || l.start == l.end) {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) > l.max {
			return fmt.Errorf("a line is longer than %s=%d", runtime.RecordMaxBytes, l.max)
		}
		grown := make([]byte, 2*len(l.buf))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.from.Read(l.buf[l.end:])
	l.end += n
	if n > 0 {
		l.alive()
	}
	if err == io.EOF {
		l.ended, err = true, nil
	}
	return err
}
