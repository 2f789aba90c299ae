package streaming

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Limits of what is kept of standard error.
const (
	reportMax = 64 << 10 // bytes of a line that may be a report
	tailMax   = 4 << 10  // bytes in an error
	tailLines = 10
)

// stderr reads the standard error of a command: lines that begin with reporter: are counters or a status, all others go
// to the attempt's log.
type stderr struct {
	task              *runtime.Task
	to                io.Writer
	prefix            []byte
	counts            bool // counters and statuses count
	nameMax, groupMax int
	tail              []byte // the last lines
}

func newStderr(t *runtime.Task, c *compiled, counts bool) *stderr {
	prefix := []byte(c.get("stream.stderr.reporter.prefix", "reporter:"))
	return &stderr{task: t, to: os.Stderr, prefix: prefix, counts: counts, nameMax: c.nameMax, groupMax: c.groupMax}
}

// read reads until all processes have closed their standard error.
func (s *stderr) read(from io.Reader) {
	buf, n := make([]byte, reportMax), 0
	for {
		got, err := from.Read(buf[n:])
		if got > 0 {
			s.task.Alive()
		}
		n += got
		n = copy(buf, buf[s.lines(buf[:n]):n])
		if n > 0 && (err != nil || n == len(buf)) { // a longer line goes to the log in pieces
			s.line(buf[:n])
			n = 0
		}
		if err != nil {
			return
		}
	}
}

// lines handles the whole lines of a text, and returns their bytes. It logs lines between reports with one write: a command
// may write millions of them.
func (s *stderr) lines(text []byte) (end int) {
	logged := 0
	for {
		n := bytes.IndexAny(text[end:], "\r\n")
		if n < 0 {
			s.log(text[logged:end])
			return end
		}
		line := text[end : end+n+1]
		if s.isReport(line) {
			s.log(text[logged:end])
			logged = end + n + 1
			s.line(line)
		} else {
			s.keep(line)
		}
		end += n + 1
	}
}

// line handles a line with its end, or a piece of a very long one.
func (s *stderr) line(line []byte) {
	if s.isReport(line) {
		problem := s.report(string(line[len(s.prefix):]))
		if problem == "" {
			return
		}
		line = fmt.Appendf(nil, "cannot use the line %.200q: %s\n", bytes.TrimRight(line, "\r\n"), problem)
	}
	s.log(line)
	s.keep(line)
}

// isReport reports whether a line is a report. The script of -mapdebug has none.
func (s *stderr) isReport(line []byte) bool {
	return len(s.prefix) > 0 && bytes.HasPrefix(line, s.prefix)
}

// log writes to the attempt's log. A log that cannot be written does not fail the attempt.
func (s *stderr) log(text []byte) {
	if len(text) > 0 {
		s.to.Write(text)
	}
}

// keep keeps a line for the error.
func (s *stderr) keep(line []byte) {
	if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
		return
	}
	s.tail = append(append(s.tail, line[max(0, len(line)-tailMax):]...), '\n')
	if len(s.tail) > 2*tailMax {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-tailMax:]...)
	}
}

// last returns the last lines that were no reports.
func (s *stderr) last() string {
	text := s.tail[max(0, len(s.tail)-tailMax):]
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), "?"), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// report handles what follows reporter:. It returns why it cannot use it.
func (s *stderr) report(text string) (problem string) {
	if status, ok := strings.CutPrefix(text, "status:"); ok {
		if s.counts {
			s.task.Status(strings.TrimSpace(status))
		}
		return ""
	}
	text, ok := strings.CutPrefix(text, "counter:")
	if !ok {
		return "want counter:GROUP,NAME,AMOUNT or status:TEXT after the prefix"
	}
	fields := strings.Split(strings.TrimRight(strings.TrimSpace(text), ","), ",")
	if len(fields) != 3 {
		return "want counter:GROUP,NAME,AMOUNT"
	}
	n, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "the amount is no whole number of 64 bits"
	}
	if s.counts {
		s.task.Counter(shorten(fields[0], s.groupMax), shorten(fields[1], s.nameMax)).Add(n)
	}
	return ""
}

// shorten cuts a name as Hadoop does: one that is longer than the limit becomes one character shorter than it, or two where
// a letter of two characters is.
func shorten(name string, limit int) string {
	if limit <= 0 || wire.CounterNameLength(name) <= limit {
		return name
	}
	n := 0
	for i, r := range name {
		if n += utf16.RuneLen(r); n >= limit {
			return name[:i]
		}
	}
	return name
}
