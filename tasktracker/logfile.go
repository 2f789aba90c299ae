package tasktracker

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
)

// logWriter writes a log of which the first and the last part are kept: the file has the
// first, of half the bytes that it may take, and "<file>+<offset>" a piece of the rest,
// by where that begins. The last two pieces stay, each of a quarter.
type logWriter struct {
	name   string
	most   int64    // that the log may take
	file   *os.File // the last one
	at     int64    // bytes that came
	end    int64    // where the next piece begins
	pieces []string
}

// pieceMark is between the name of a log and where a piece of it begins.
const pieceMark = "+"

func newLogWriter(name string, most int64) (*logWriter, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &logWriter{name: name, most: most, file: file, end: most / 2}, nil
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if l.at == l.end {
			if err := l.next(); err != nil {
				return written, err
			}
		}
		n, err := l.file.Write(p[:min(int64(len(p)), l.end-l.at)])
		written, l.at, p = written+n, l.at+int64(n), p[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// next begins a piece, and removes the one before the last.
func (l *logWriter) next() error {
	if len(l.pieces) == 2 {
		if err := os.Remove(l.pieces[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.pieces = l.pieces[1:]
	}
	name := l.name + pieceMark + strconv.FormatInt(l.at, 10)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	l.file.Close()
	l.file, l.pieces, l.end = file, append(l.pieces, name), l.at+l.most/4
	return nil
}

// leastLog is what is kept of a log for which there is no room.
const leastLog = 32 << 10

// shrink makes room for others, as far as it can: the log is written no more.
func (l *logWriter) shrink() {
	for _, name := range l.pieces {
		_ = os.Remove(name)
	}
	if info, err := os.Stat(l.name); err == nil && info.Mode().IsRegular() && info.Size() > leastLog {
		_ = os.Truncate(l.name, leastLog)
	}
}

func (l *logWriter) Close() error { return l.file.Close() }

// logText is a log as it is at some moment, in one piece: a line says how much was left
// out where.
type logText struct {
	parts []logPart
	size  int64
	files []*os.File
}

type logPart struct {
	io.ReaderAt
	size int64
}

// openTries bounds how often a log is opened while pieces of it go.
const openTries = 10

func openLog(name string) (*logText, error) {
	for try := 1; ; try++ {
		text, err := tryOpenLog(name)
		if err == nil || try == openTries || !errors.Is(err, errPieceGone) {
			return text, err
		}
	}
}

var errPieceGone = errors.New("a piece of the log has just been removed")

func tryOpenLog(name string) (_ *logText, err error) {
	text := &logText{}
	defer func() {
		if err != nil {
			text.Close()
		}
	}()
	pieces, err := piecesOf(name)
	if err != nil {
		return nil, err
	}
	if err := text.add(name); err != nil {
		return nil, err
	}
	end := text.size
	for _, begin := range pieces {
		if left := begin - end; left > 0 {
			note := fmt.Sprintf("\n[%d bytes were left out here: of a long log the first and the last part are kept]\n", left)
			text.parts = append(text.parts, logPart{strings.NewReader(note), int64(len(note))})
			text.size += int64(len(note))
		}
		before := text.size
		err := text.add(name + pieceMark + strconv.FormatInt(begin, 10))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errPieceGone
		}
		if err != nil {
			return nil, err
		}
		end = begin + text.size - before
	}
	return text, nil
}

// piecesOf lists where the pieces of a log begin.
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

func (t *logText) add(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	t.files = append(t.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t.parts = append(t.parts, logPart{f, info.Size()})
	t.size += info.Size()
	return nil
}

// ReadAt implements io.ReaderAt.
func (t *logText) ReadAt(p []byte, off int64) (n int, err error) {
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

func (t *logText) Close() {
	for _, f := range t.files {
		f.Close()
	}
}
