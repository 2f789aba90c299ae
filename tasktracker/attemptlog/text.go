package attemptlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Text is a log as one text, as it was when it was opened. Lines say where bytes are missing.
type Text struct {
	parts []part
	size  int64
	files []*os.File
}

type part struct {
	io.ReaderAt
	size  int64
	begin int64 // offset of its first byte in all that the attempt has written; of a note, of the missing bytes
	note  bool
}

// maxOpenTries limits the tries of Open while pieces of the log are removed.
const maxOpenTries = 10

// Open opens a log in its current state. The log may grow afterwards.
func Open(name string) (*Text, error) {
	for try := 1; ; try++ {
		text, err := tryOpen(name)
		if err == nil || try == maxOpenTries || !errors.Is(err, errPieceRemoved) {
			return text, err
		}
	}
}

var errPieceRemoved = errors.New("a piece of the log has just been removed")

func tryOpen(name string) (_ *Text, err error) {
	text := &Text{}
	defer func() {
		if err != nil {
			text.Close()
		}
	}()
	pieces, err := piecesOf(name)
	if err != nil {
		return nil, err
	}
	if err := text.add(name, 0); err != nil {
		return nil, err
	}
	end := text.size
	for _, begin := range pieces {
		if missing := begin - end; missing > 0 {
			note := fmt.Sprintf("\n[%d bytes were left out here: of a long log the first and the last part are kept]\n", missing)
			text.parts = append(text.parts, part{strings.NewReader(note), int64(len(note)), end, true})
			text.size += int64(len(note))
		}
		before := text.size
		err := text.add(name+pieceMark+strconv.FormatInt(begin, 10), begin)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errPieceRemoved
		}
		if err != nil {
			return nil, err
		}
		end = begin + text.size - before
	}
	return text, nil
}

// piecesOf returns the offsets of the later pieces of a log.
func piecesOf(name string) ([]int64, error) {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	var begins []int64
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), filepath.Base(name)+pieceMark); ok {
			if begin, err := strconv.ParseInt(text, 10, 64); err == nil {
				begins = append(begins, begin)
			}
		}
	}
	slices.Sort(begins)
	return begins, nil
}

// add adds a file, which begins at an offset of the log. A job may have replaced it by a pipe, or by a link to another file.
func (t *Text) add(name string, begin int64) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	t.files = append(t.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	t.parts = append(t.parts, part{f, info.Size(), begin, false})
	t.size += info.Size()
	return nil
}

// ReadAt implements io.ReaderAt.
func (t *Text) ReadAt(p []byte, off int64) (n int, err error) {
	for _, part := range t.parts {
		if off >= part.size {
			off -= part.size
			continue
		}
		m, err := part.ReadAt(p[n:n+int(min(int64(len(p)-n), part.size-off))], off)
		n += m
		if err != nil && err != io.EOF {
			return n, err
		}
		if n == len(p) || off+int64(m) < part.size {
			break
		}
		off = 0
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// End returns how many bytes the attempt has written so far, also those that are missing.
func (t *Text) End() int64 {
	last := t.parts[len(t.parts)-1]
	return last.begin + last.size
}

// Find returns the offset in the text of what the attempt wrote after its first bytes. If the next ones
// are missing, the line that says so comes first.
func (t *Text) Find(written int64) int64 {
	at := int64(0)
	for i, p := range t.parts {
		switch {
		case p.note && written < t.parts[i+1].begin:
			return at
		case !p.note && written < p.begin+p.size:
			return at + max(written-p.begin, 0)
		}
		at += p.size
	}
	return at
}

// Size returns the length of the text in bytes.
func (t *Text) Size() int64 { return t.size }

// Close closes the files of the log.
func (t *Text) Close() {
	for _, f := range t.files {
		f.Close()
	}
}
