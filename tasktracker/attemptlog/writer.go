package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// writer writes a log and keeps its first and its last part. The file has the first half
// of the limit. Later pieces, in files "<file>+<offset>", have a quarter of the limit
// each; the last two stay.
type writer struct {
	name     string
	limit    int64    // in bytes
	file     *os.File // of the last piece
	written  int64    // in bytes, also to removed pieces
	pieceEnd int64    // offset of the next piece
	pieces   []string
}

// pieceMark separates the name of a log and the offset of a piece.
const pieceMark = "+"

func newWriter(name string, limit int64) (*writer, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &writer{name: name, limit: limit, file: file, pieceEnd: limit / 2}, nil
}

// Write implements io.Writer.
func (l *writer) Write(p []byte) (int, error) {
	count := 0
	for len(p) > 0 {
		if l.written == l.pieceEnd {
			if err := l.next(); err != nil {
				return count, err
			}
		}
		n, err := l.file.Write(p[:min(int64(len(p)), l.pieceEnd-l.written)])
		count, l.written, p = count+n, l.written+int64(n), p[n:]
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

// next starts a piece, and removes the piece before the last.
func (l *writer) next() error {
	if len(l.pieces) == 2 {
		if err := os.Remove(l.pieces[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.pieces = l.pieces[1:]
	}
	name := l.name + pieceMark + strconv.FormatInt(l.written, 10)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	l.file.Close()
	l.file, l.pieces, l.pieceEnd = file, append(l.pieces, name), l.written+l.limit/4
	return nil
}

// minLog is the size of a log after a failed write, if it was larger.
const minLog = 32 << 10

// shrink frees disk space. Call it after the last Write.
func (l *writer) shrink() {
	for _, name := range l.pieces {
		_ = os.Remove(name)
	}
	if info, err := os.Stat(l.name); err == nil && info.Mode().IsRegular() && info.Size() > minLog {
		_ = os.Truncate(l.name, minLog)
	}
}

func (l *writer) Close() error { return l.file.Close() }
