// Package audit writes an audit log: one line of JSON for each event, in a file of its own.
//
//	{"time":"2026-01-02T03:04:05.678Z","who":"client ann","from":"10.0.0.7:51312",
//	 "action":"kill","on":"job_1767322800_0001","outcome":"done"}
//
// # Invariants
//
//	U1  Record never waits for a disk. It keeps at most queueLength events that are not written
//	    yet. If more come, they are lost, and a line with the action "lost" counts them.
//	U2  All files together have at most (keptFiles+1) × the limit of one, plus a line.
//	U3  Each event is one line: texts are truncated, and JSON escapes control characters.
//	U4  Only the file's owner can read it, and its rotated files. A file with a wider mode is narrowed,
//	    because a daemon that refused it would lose the events after each logrotate.
//
// At its limit, FILE is renamed to FILE.1, FILE.1 to FILE.2 and so on. If another program renames or
// removes FILE, the next event makes a new one. After an error of the disk, the event is lost, the
// error is logged, and the next event tries again.
//
// Any goroutine may use a Log.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quernmr/quern/wire"
)

// Event is an event in the log.
type Event struct {
	Time    time.Time `json:"time"` // set by Record
	Who     string    `json:"who"`  // role and name in the certificate; "unidentified": without one
	From    string    `json:"from"` // host:port
	Action  string    `json:"action"`
	On      string    `json:"on,omitempty"`     // the thing that is changed or read
	Detail  string    `json:"detail,omitempty"` // such as the new settings
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"` // of a refusal or failure
}

// The outcomes.
const (
	Done    = "done"
	Refused = "refused" // the caller may not do it
	Failed  = "failed"  // or it is not known whether it has happened
)

// ForeignHost is the refusal of a request for a host that is not the daemon's.
func ForeignHost(who string, r *http.Request, err error) Event {
	return Event{Who: who, From: r.RemoteAddr, Action: "request for another host", On: r.URL.Path, Outcome: Refused, Reason: err.Error()}
}

const (
	queueLength = 1024
	keptFiles   = 4
	fileLimit   = 64 << 20 // bytes
	maxText     = 1000     // bytes of each text of an event
)

// Log is an audit log. A nil Log records nothing.
type Log struct {
	name   string
	limit  int64 // bytes of a file
	logger *slog.Logger
	done   chan struct{}

	mu     sync.Mutex
	queue  chan Event
	lost   int
	closed bool

	file   *os.File // only the goroutine of write uses it; nil: it must be opened
	failed bool     // the last write failed
}

// Open opens a log, and makes the file if it does not exist.
func Open(name string, logger *slog.Logger) (*Log, error) {
	l := newLog(name, fileLimit, logger)
	if err := l.reopen(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	for _, old := range Files(name)[1:] {
		if err := l.narrowOld(old); err != nil {
			return nil, errors.Join(fmt.Errorf("audit log: %w", err), l.file.Close())
		}
	}
	go l.writeAll()
	return l, nil
}

// Files returns the names of a log's files: the current one, and those that rotation makes.
func Files(name string) []string {
	all := []string{name}
	for n := 1; n <= keptFiles; n++ {
		all = append(all, fmt.Sprintf("%s.%d", name, n))
	}
	return all
}

func newLog(name string, limit int64, logger *slog.Logger) *Log {
	return &Log{name: name, limit: limit, logger: logger, done: make(chan struct{}), queue: make(chan Event, queueLength)}
}

// Record adds an event with the present time.
func (l *Log) Record(e Event) {
	if l == nil {
		return
	}
	for _, text := range []*string{&e.Who, &e.From, &e.Action, &e.On, &e.Detail, &e.Reason} {
		*text = wire.Truncate(*text, maxText)
	}
	e.Time = time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.queue <- e:
	default:
		l.lost++
	}
}

// Close writes the events that are left, and closes the file.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.done
}

func (l *Log) writeAll() {
	defer close(l.done)
	for x := range l.queue {
		l.write(x)
		if n := l.takeLost(); n > 0 {
			l.write(Event{Time: time.Now().UTC(), Who: "audit", Action: "lost", Outcome: Failed, Reason: fmt.Sprintf("%d events came faster than the disk could take them", n)})
		}
	}
	if l.file != nil {
		l.file.Close() // each line was written at once
	}
}

func (l *Log) takeLost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lost
	l.lost = 0
	return n
}

// write writes a line, and logs the first of several errors.
func (l *Log) write(x Event) {
	err := l.append(x)
	if err != nil && !l.failed {
		l.logger.Error("the audit log cannot be written: events are lost", "file", l.name, "error", err)
	}
	if err == nil && l.failed {
		l.logger.Info("the audit log is written again", "file", l.name)
	}
	l.failed = err != nil
}

func (l *Log) append(x Event) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	size, err := l.current()
	if err == nil && size > 0 && size+int64(len(text)) > l.limit {
		err = l.rotate()
	}
	if err != nil {
		return err
	}
	_, err = l.file.Write(text)
	return err
}

// current returns the size of the file, after it has opened it again if it is another one by now.
func (l *Log) current() (size int64, err error) {
	if l.file != nil {
		named, err := os.Stat(l.name)
		open, openErr := l.file.Stat()
		if err == nil && openErr == nil && os.SameFile(named, open) {
			return open.Size(), nil
		}
	}
	if err := l.reopen(); err != nil {
		return 0, err
	}
	info, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (l *Log) reopen() (err error) {
	if l.file != nil {
		l.file.Close() // nothing is left to write
	}
	if l.file, err = os.OpenFile(l.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		l.file = nil
		return err
	}
	info, err := l.file.Stat()
	if err == nil {
		err = l.narrow(l.name, info, l.file.Chmod)
	}
	if err != nil {
		l.file.Close() // nothing is written yet
		l.file = nil
	}
	return err
}

// narrow takes the rights of other users from a file. Devices and pipes keep theirs.
func (l *Log) narrow(name string, info fs.FileInfo, chmod func(fs.FileMode) error) error {
	mode := info.Mode()
	if !mode.IsRegular() || mode.Perm()&0o077 == 0 {
		return nil
	}
	if err := chmod(mode.Perm() &^ 0o077); err != nil {
		return fmt.Errorf("other users have access to %s (mode %v), and it cannot be taken from them: %w", name, mode.Perm(), err)
	}
	l.logger.Warn("other users had access to the audit log, which is taken from them", "file", name, "mode", mode.Perm())
	return nil
}

// narrowOld narrows a rotated file, which may be missing. The log may be a link, and so are its rotated files then.
func (l *Log) narrowOld(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.narrow(name, info, func(mode fs.FileMode) error { return os.Chmod(name, mode) })
}

func (l *Log) rotate() error {
	names := Files(l.name)
	for n := keptFiles; n > 0; n-- {
		if err := os.Rename(names[n-1], names[n]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.reopen()
}
