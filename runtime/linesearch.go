package runtime

import (
	"bytes"

	"github.com/quernmr/quern/runtime/search"
)

// Only lets [Split.Lines] yield only lines that pass a predicate; several calls: all of them. The other lines count as
// records too, so that the counter of input records and the numbers of lines stay the same. But they do not count
// for skipped ranges: only what the job's code gets can be bad.
func (s *Split) Only(p search.Predicate) {
	if p.All() {
		return
	}
	if s.search == nil {
		s.search = &search.Lines{}
	}
	s.search.Add(p)
}

// whole returns the whole lines in the block that belong to the chunk and can be searched together. There are none if
// nothing is known to search for, or if the next line must be read alone: it is the first of a file, which may have a byte order
// mark, it may be too long, or it does not end in the block.
func (l *lineReader) whole(before int64) []byte {
	s := l.split
	text := l.buf[l.next:]
	if s.search == nil || !s.search.Needles() || len(l.end) > 1 || len(text) == 0 ||
		len(text) >= min(s.recordMax, s.lineMax) || l.base+int64(l.next)+s.pieceAt == 0 {
		return nil
	}
	if stop := l.in.end() - l.base - int64(l.next) + before - 1; stop < int64(len(text)) { // the last line's end is there or later
		if n := bytes.IndexByte(text[stop:], l.end[0]); n >= 0 {
			text = text[:int(stop)+n+1]
		}
	}
	return text[:bytes.LastIndexByte(text, l.end[0])+1]
}

// searchIn yields the next lines of the block that pass.
func (l *lineReader) searchIn(text []byte, yield func(string) bool) (more bool, err error) {
	s, begin := l.split, l.next
	finder := s.search.In(text)
	for at := 0; at < len(text); {
		hit := finder.Next(at)
		if hit < 0 {
			hit = len(text)
		}
		from := at + bytes.LastIndexByte(text[at:hit], l.end[0]) + 1
		s.records += int64(bytes.Count(text[at:from], []byte(l.end)))
		if !s.pulse.beat() {
			return false, s.ctx.Err()
		}
		if at = from; at == len(text) {
			break
		}
		line := text[from : hit+bytes.IndexByte(text[hit:], l.end[0])]
		at += len(line) + 1
		l.next = begin + at
		s.recordAt = l.base + int64(begin+from)
		if n := len(line) - 1; n >= 0 && line[n] == '\r' && s.delimiter == "" {
			line = line[:n]
		}
		if more, err := l.pass(line, yield); !more {
			return false, err
		}
	}
	l.next, l.scanned = begin+len(text), 0
	return true, nil
}

// kept copies a line of a block that is written again.
func (s *Split) kept(line []byte) []byte {
	copied := s.block(len(line))
	copy(copied, line)
	return copied
}

// blockAfter returns a block for the beginning of a line, and size bytes. For a search it is the last block again, which may
// contain that beginning.
func (s *Split) blockAfter(tail []byte, size int) []byte {
	size += len(tail)
	if s.search == nil {
		return s.block(size)
	}
	if size > cap(s.searched) {
		s.searched = make([]byte, size)
	}
	return s.searched[:size]
}
