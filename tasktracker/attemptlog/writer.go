package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// writer writes a log of which the first and the last part are kept: the file has the
// first, of half the bytes that it may take, and "<file>+<offset>" a piece of the rest,
// by where that begins. The last two pieces stay, each of a quarter.
type writer struct {
	name   string
	most   int64    // that the log may take
	file   *os.File // the last one
	at     int64    // bytes that came
	end    int64    // where the next piece begins
	pieces []string
}

// pieceMark is between the name of a log and where a piece of it begins.
const pieceMark = "+"

func newWriter(name string, most int64) (*writer, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &writer{name: name, most: most, file: file, end: most / 2}, nil
}

// Write implements io.Writer.
func (l *writer) Write(p []byte) (int, error) {
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
func (l *writer) next() error {
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
const minLog = 32 << 10

// shrink makes room for others, as far as it can: the log is written no more.
func (l *writer) shrink() {
	for _, name := range l.pieces {
		_ = os.Remove(name)
	}
	if info, err := os.Stat(l.name); err == nil && info.Mode().IsRegular() && info.Size() > minLog {
		_ = os.Truncate(l.name, minLog)
	}
}

func (l *writer) Close() error { return l.file.Close() }
