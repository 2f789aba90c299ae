package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lineFeed ends a line, unless a delimiter is set.
const lineFeed = "\n"

// overlaps reports whether two occurrences of a delimiter can share bytes, as "\n\n" in three line feeds.
func overlaps(delimiter string) bool {
	for n := 1; n < len(delimiter); n++ {
		if delimiter[n:] == delimiter[:len(delimiter)-n] {
			return true
		}
	}
	return false
}

// settle returns the offset, at least offset, where the search for the first delimiter of a split begins. In a row
// of occurrences that share bytes, the first one counts, and then each that shares none with the last one that
// counts. A row may begin before the split.
func (l *lineReader) settle(offset int64) (int64, error) {
	for window := int64(4096); ; window *= 2 {
		from := max(offset-window, 0)
		before := make([]byte, offset-from+int64(len(l.end)-1))
		n, err := l.in.file.ReadAt(before, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		next, known := countedUpTo(before[:n], l.end, int(offset-from), from == 0)
		if known {
			return from + int64(next), nil
		}
		if window > int64(l.split.recordMax) {
			return 0, fatalInput(fmt.Errorf("read %s: delimiters that share bytes fill more than %d bytes before offset %d; raise %s",
				l.split.path, l.split.recordMax, offset, RecordMaxBytes))
		}
	}
}

// countedUpTo returns where the search continues after the last delimiter that counts and begins before end.
// known is false if that depends on bytes before text, which whole says is from the file's beginning.
func countedUpTo(text []byte, delimiter string, end int, whole bool) (next int, known bool) {
	size := len(delimiter)
	last, known := -1, whole // last is the latest occurrence: at most the one before text
	if whole {
		last = -size
	}
	for at := 0; at < end; at++ {
		n := bytes.Index(text[at:], []byte(delimiter))
		if n < 0 || at+n >= end {
			break
		}
		at += n
		if at-last >= size {
			known, next = true, at
		}
		if known && at >= next {
			next = at + size
		}
		last = at
	}
	if end-last >= size { // no row reaches the end
		return end, true
	}
	return max(next, end), known
}
