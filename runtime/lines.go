package runtime

import (
	"bytes"
	"cmp"
	"iter"
	"unsafe"

	"github.com/quernmr/quern/wire"
)

// byteOrderMark begins some texts in UTF-8. As in Hadoop, it is not part of a line.
const byteOrderMark = "\xef\xbb\xbf"

// Lines yields the lines without their ends: LF or CR LF, or else the input's delimiter. All other bytes are
// data, except for a byte order mark at a file's start. Lines that are too long for the property [LineMaxLength]
// are left out. A line is a substring of a block that is never written again, so callers may keep it. Keeping a
// small line keeps its block of 256 KiB. With predicates ([Split.Only]), a line is a copy, and the block is used again.
//
// A line belongs to the split in which the end of the line before it begins, and the first line to the first
// split. A split that begins within a file therefore skips everything up to the first LF, even if a line begins
// at its offset. So every line is read once, for all split sizes.
func (s *Split) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.each(atOffset, func(c Chunk, in *stream, at int64) (bool, error) {
			l := lineReader{split: s, chunk: c, in: in, base: at, end: cmp.Or(s.delimiter, lineFeed)}
			if inner, err := l.inner(); err != nil {
				return false, err
			} else if inner && !s.cutAtLines {
				if found, err := l.skipFirst(); !found {
					return err == nil, err
				}
			}
			first := l.base + int64(l.next)
			s.lines = lineCount{chunk: c, begun: true, from: first, before: -1, records: s.records}
			more, err := l.run(yield)
			s.recordBytes += l.base + int64(l.next) - first
			return more, err
		})
	}
}

// endsAtCR reports whether a CR without LF ends a line too. [Split.Lines] then only cuts off such a CR at the end of a
// file: its caller cuts lines at the others.
func (s *Split) endsAtCR() bool { return s.in != nil && isText(s.in) }

// isText reports whether an input's lines are those of Hadoop's TextInputFormat.
func isText(in *wire.InputPlan) bool { return in.Format == "text" || in.Format == FormatCombined }

type lineReader struct {
	split   *Split
	chunk   Chunk
	in      *stream
	end     string // of a line
	buf     []byte // the filled part of the block
	base    int64  // offset of buf[0] in the file's content
	next    int    // start of the next line in buf
	scanned int    // bytes after next that contain no end of a line
	last    bool   // buf is the last block
}

// find returns the index of the end of the first line in text; -1 if there is none.
func (l *lineReader) find(text []byte) int {
	if len(l.end) == 1 {
		return bytes.IndexByte(text, l.end[0])
	}
	return bytes.Index(text, []byte(l.end))
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

// skipFirst skips to the first line of a split that begins within a file.
func (l *lineReader) skipFirst() (found bool, err error) {
	if l.in.packed == nil && overlaps(l.end) {
		from, err := l.settle(l.base)
		if err != nil {
			return false, err
		}
		for !l.last && l.base+int64(len(l.buf)) < from {
			if err := l.fill(); err != nil {
				return false, err
			}
		}
		l.next = min(int(from-l.base), len(l.buf))
	}
	return l.skip()
}

// skip skips to the byte after the end of the line. It reports false if that end does not begin within the chunk.
func (l *lineReader) skip() (found bool, err error) {
	for {
		if n := l.find(l.buf[l.next:]); n >= 0 {
			l.next, l.scanned = l.next+n+len(l.end), 0
			return true, nil
		}
		l.next = max(l.next, len(l.buf)-len(l.end)+1)
		if l.last || l.base+int64(l.next) >= l.in.end() {
			return false, nil
		}
		if err := l.fill(); err != nil {
			return false, err
		}
	}
}

// run yields the chunk's lines.
func (l *lineReader) run(yield func(string) bool) (bool, error) {
	s, limit := l.split, l.split.recordMax
	before := int64(len(l.end)) // a line belongs to the chunk that has this many bytes before it
	if s.cutAtLines {
		before = 0
	}
	for l.base+int64(l.next)-before < l.in.end() {
		if lines := l.whole(before); len(lines) > 0 {
			if more, err := l.searchIn(lines, yield); !more {
				return false, err
			}
			continue
		}
		from := l.next + max(l.scanned-len(l.end)+1, 0)
		n := l.find(l.buf[from:])
		if n < 0 && !l.last {
			if l.scanned = len(l.buf) - l.next; l.scanned > s.lineMax+len(byteOrderMark) {
				if found, err := l.skip(); !found {
					l.next = len(l.buf)
					return err == nil, err
				}
				s.lines.left++
			} else if err := l.fill(); err != nil {
				return false, err
			}
			continue
		}
		line, after := l.buf[l.next:], len(l.buf)
		if n >= 0 {
			line, after = l.buf[l.next:from+n], from+n+len(l.end)
		}
		if k := len(line) - 1; k >= 0 && line[k] == '\r' && s.delimiter == "" && (n >= 0 || s.endsAtCR()) {
			line = line[:k]
		}
		stored := after - l.next
		if l.base+int64(l.next)+s.pieceAt == 0 {
			marked := len(line)
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
			stored -= marked - len(line)
		}
		if n < 0 && len(line) == 0 {
			l.next = after // the content is only a byte order mark
			break          // the content ends with a line's end
		}
		if stored >= s.lineMax {
			l.next, l.scanned = after, 0
			s.lines.left++
			continue
		}
		if len(line) > limit {
			return false, s.tooLarge(l.base + int64(l.next))
		}
		s.recordAt = l.base + int64(l.next)
		l.next, l.scanned = after, 0
		if more, err := l.pass(line, yield); !more {
			return false, err
		}
	}
	return true, nil
}

// pass yields a line, unless it is skipped or fails the input's predicates. It reports false at the end of the records.
func (l *lineReader) pass(line []byte, yield func(string) bool) (more bool, err error) {
	s := l.split
	passes := s.search == nil || s.search.Match(line)
	if passes && s.skip != nil && s.skip.begin() {
		s.skipRecord(string(line))
		s.lines.left++
		return true, nil
	}
	s.records++
	switch {
	case !s.pulse.beat():
		return false, s.ctx.Err()
	case !passes:
		return true, nil
	case s.search != nil:
		line = s.kept(line)
	}
	return yield(unsafe.String(unsafe.SliceData(line), len(line))), nil
}

// fill gets a block, copies the beginning of a line into it, and reads on.
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
	block := l.split.blockAfter(tail, int(more))
	copy(block, tail)
	n, end, err := l.split.readFull(l.chunk, l.in, block[len(tail):], at)
	l.buf, l.last = block[:len(tail)+n], end
	return err
}

// gather finds the end of a line of many blocks, and then joins the blocks. So it uses
// twice the line's size; growing a block would use three times its size or more.
func (l *lineReader) gather(tail []byte) error {
	pieces, size := [][]byte{tail}, len(tail)
	border := len(l.end) - 1 // an end may begin in so many of the last bytes
	seam := bytes.Clone(tail[max(len(tail)-border, 0):])
	for found := false; !found && !l.last && size <= l.split.lineMax+len(byteOrderMark); {
		if size > l.split.recordMax+len(byteOrderMark)+len(l.end) { // its last byte may be a CR
			return l.split.tooLarge(l.base)
		}
		l.scanned = size
		piece := l.split.block(l.split.blockSize)
		n, end, err := l.split.readFull(l.chunk, l.in, piece, l.base+int64(size))
		if err != nil {
			return err
		}
		seam = append(seam, piece[:min(n, border)]...)
		found, l.last = l.find(piece[:n]) >= 0 || l.find(seam) >= 0, end
		if n > border {
			seam = append(seam[:0], piece[n-border:n]...)
		} else {
			seam = seam[max(len(seam)-border, 0):]
		}
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
