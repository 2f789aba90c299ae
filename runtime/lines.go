package runtime

import (
	"bytes"
	"iter"
	"unsafe"
)

// byteOrderMark begins some texts in UTF-8. It belongs to no line, as in Hadoop.
const byteOrderMark = "\xef\xbb\xbf"

// Lines gives the lines without their ends: LF, or CR LF. A CR elsewhere and any
// other byte is data, but for a byte order mark at a file's start. A line is a
// substring of a block that is never written again, so it may be kept; a small one
// kept keeps its block of 256 KiB.
//
// A split that begins within a file leaves the line there, also one that begins
// just there, to the split before, which reads on until a line begins behind its
// end. So every line is read once, whatever the sizes of the splits.
func (s *Split) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.each(atOffset, func(c Chunk, in *stream, at int64) (bool, error) {
			l := lineReader{split: s, chunk: c, in: in, base: at}
			if at > 0 {
				if found, err := l.skip(); !found {
					return err == nil, err
				}
			}
			first := l.base + int64(l.next)
			more, err := l.run(yield)
			s.consumed += l.base + int64(l.next) - first
			return more, err
		})
	}
}

type lineReader struct {
	split   *Split
	chunk   Chunk
	in      *stream
	buf     []byte // the block, as far as it is filled
	base    int64  // offset of buf[0] in the file's content
	next    int    // where in buf the next line begins
	scanned int    // bytes behind next known to hold no LF
	end     bool   // nothing follows buf
}

// skip goes behind the first LF.
func (l *lineReader) skip() (found bool, err error) {
	for {
		if n := bytes.IndexByte(l.buf, '\n'); n >= 0 {
			l.next = n + 1
			return true, nil
		}
		l.base += int64(len(l.buf))
		l.buf = l.buf[:0]
		if l.end || l.base >= l.in.end {
			return false, nil
		}
		if err := l.fill(); err != nil {
			return false, err
		}
	}
}

// run gives the lines that begin up to the chunk's end.
func (l *lineReader) run(yield func(string) bool) (bool, error) {
	s, most := l.split, l.split.recordMax
	for l.base+int64(l.next) <= l.in.end {
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
		if l.base+int64(l.next) == 0 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if n < 0 && len(line) == 0 {
			l.next = after // of a content that is a mark and nothing else
			break          // the content ends with a line's end
		}
		if len(line) > most {
			return false, tooLarge(l.chunk.Path, l.base+int64(l.next), most)
		}
		s.at = l.base + int64(l.next)
		l.next, l.scanned = after, 0
		s.records++
		s.pulse.beat()
		if !yield(unsafe.String(unsafe.SliceData(line), len(line))) {
			return false, nil
		}
	}
	return true, nil
}

// fill takes a new block, copies the beginning of a line there, and reads on.
func (l *lineReader) fill() error {
	tail := l.buf[l.next:]
	l.base += int64(l.next)
	l.next = 0
	if len(tail) >= l.split.blockSize {
		return l.gather(tail)
	}
	at := l.base + int64(len(tail))
	size := int64(l.split.blockSize)
	more := max(size/16, 1) // behind the split's end, when slack was not enough
	if left := l.in.end - at; left > 0 {
		slack := size / 256 // for the rest of the last line
		more = min(left, size-slack) + slack
	}
	if at == 0 && compressed(l.chunk.Path) != "" {
		more = min(8*l.chunk.Size+size/16, size) // so that small files take small blocks
	}
	block := l.split.block(len(tail) + int(more))
	copy(block, tail)
	n, end, err := l.split.readFull(l.chunk, l.in, block[len(tail):], at)
	l.buf, l.end = block[:len(tail)+n], end
	return err
}

// gather puts a line of many blocks together once its end is found, so that it
// takes twice its size; growing a block would take three times and more.
func (l *lineReader) gather(tail []byte) error {
	pieces, size := [][]byte{tail}, len(tail)
	for found := false; !found && !l.end; {
		if size > l.split.recordMax+len(byteOrderMark)+1 { // a CR may be its last byte
			return tooLarge(l.chunk.Path, l.base, l.split.recordMax)
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

// block gives fresh memory, small pieces out of a common one.
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
