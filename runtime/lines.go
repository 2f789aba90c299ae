package runtime

import (
	"bytes"
	"iter"
	"unsafe"
)

// byteOrderMark begins some texts in UTF-8. As in Hadoop, it is not part of a line.
const byteOrderMark = "\xef\xbb\xbf"

// Lines yields the lines without their ends: LF, or CR LF. All other bytes are data, except
// for a byte order mark at a file's start. A line is a substring of a block that is never
// written again, so callers may keep it. Keeping a small line keeps its block of 256 KiB.
//
// A split that begins within a file skips everything up to the first LF, even if a line
// begins at its offset. The previous split reads all lines that begin up to its own end,
// including that one. So every line is read once, for all split sizes.
func (s *Split) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.each(atOffset, func(c Chunk, in *stream, at int64) (bool, error) {
			l := lineReader{split: s, chunk: c, in: in, base: at}
			if inner, err := l.inner(); err != nil {
				return false, err
			} else if inner {
				if found, err := l.skip(); !found {
					return err == nil, err
				}
			}
			first := l.base + int64(l.next)
			more, err := l.run(yield)
			s.recordBytes += l.base + int64(l.next) - first
			return more, err
		})
	}
}

type lineReader struct {
	split   *Split
	chunk   Chunk
	in      *stream
	buf     []byte // the filled part of the block
	base    int64  // offset of buf[0] in the file's content
	next    int    // start of the next line in buf
	scanned int    // bytes after next that contain no LF
	end     bool   // buf is the last block
}

// inner reports whether the split begins within the file's content. Of a compressed file this is known
// after the first read.
func (l *lineReader) inner() (bool, error) {
	if l.in.packed == nil || l.chunk.Offset == 0 {
		return l.base > 0, nil
	}
	err := l.fill()
	if !l.in.packed.First() {
		l.split.pieceAt = l.chunk.Offset
	}
	return l.split.pieceAt > 0, err
}

// skip skips to the byte after the first LF.
func (l *lineReader) skip() (found bool, err error) {
	for {
		if n := bytes.IndexByte(l.buf, '\n'); n >= 0 {
			l.next = n + 1
			return true, nil
		}
		l.base += int64(len(l.buf))
		l.buf = l.buf[:0]
		if l.end || l.base >= l.in.end() {
			return false, nil
		}
		if err := l.fill(); err != nil {
			return false, err
		}
	}
}

// run yields the lines that begin up to the chunk's end.
func (l *lineReader) run(yield func(string) bool) (bool, error) {
	s, limit := l.split, l.split.recordMax
	for l.base+int64(l.next) <= l.in.end() {
		from := l.next + l.scanned
		n := bytes.IndexByte(l.buf[from:], '\n')
		if n < 0 && !l.end {
			l.scanned = len(l.buf) - l.next
			if err := l.fill(); err != nil {
				return false, err
			}
			continue
		}
		line, after := l.buf[l.next:], len(l.buf)
		if n >= 0 {
			line, after = l.buf[l.next:from+n], from+n+1
			if k := len(line) - 1; k >= 0 && line[k] == '\r' {
				line = line[:k]
			}
		}
		if l.base+int64(l.next)+s.pieceAt == 0 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if n < 0 && len(line) == 0 {
			l.next = after // the content is only a byte order mark
			break          // the content ends with a line's end
		}
		if len(line) > limit {
			return false, s.tooLarge(l.base + int64(l.next))
		}
		s.recordAt = l.base + int64(l.next)
		l.next, l.scanned = after, 0
		if s.skip != nil && s.skip.begin() {
			s.skipRecord(string(line))
			continue
		}
		s.records++
		if !s.pulse.beat() {
			return false, s.ctx.Err()
		}
		if !yield(unsafe.String(unsafe.SliceData(line), len(line))) {
			return false, nil
		}
	}
	return true, nil
}

// fill allocates a block, copies the beginning of a line into it, and reads on.
func (l *lineReader) fill() error {
	tail := l.buf[l.next:]
	l.base += int64(l.next)
	l.next = 0
	if len(tail) >= l.split.blockSize {
		return l.gather(tail)
	}
	at := l.base + int64(len(tail))
	size := int64(l.split.blockSize)
	more := max(size/16, 1) // past the split's end, if slack was not enough
	if remaining := l.in.end() - at; remaining > 0 {
		slack := size / 256 // for the rest of the last line
		more = min(remaining, size-slack) + slack
	}
	if at == 0 && l.in.packed != nil {
		more = min(8*l.chunk.Length+size/16, size) // small files get small blocks
	}
	block := l.split.block(len(tail) + int(more))
	copy(block, tail)
	n, end, err := l.split.readFull(l.chunk, l.in, block[len(tail):], at)
	l.buf, l.end = block[:len(tail)+n], end
	return err
}

// gather finds the end of a line of many blocks, and then joins the blocks. So it uses
// twice the line's size; growing a block would use three times its size or more.
func (l *lineReader) gather(tail []byte) error {
	pieces, size := [][]byte{tail}, len(tail)
	for found := false; !found && !l.end; {
		if size > l.split.recordMax+len(byteOrderMark)+1 { // its last byte may be a CR
			return l.split.tooLarge(l.base)
		}
		l.scanned = size
		piece := l.split.block(l.split.blockSize)
		n, end, err := l.split.readFull(l.chunk, l.in, piece, l.base+int64(size))
		if err != nil {
			return err
		}
		found, l.end = bytes.IndexByte(piece[:n], '\n') >= 0, end
		pieces, size = append(pieces, piece[:n]), size+n
	}
	l.buf = bytes.Join(pieces, nil)
	return nil
}

// block returns new memory. Small pieces share a block.
func (s *Split) block(size int) []byte {
	if size > len(s.slab) {
		if size > s.blockSize/4 {
			return make([]byte, size)
		}
		s.slab = make([]byte, s.blockSize)
	}
	b := s.slab[:size:size]
	s.slab = s.slab[size:]
	return b
}
