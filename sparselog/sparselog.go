// Package sparselog limits log lines that unknown peers or jobs can cause, such as refused handshakes: they must not fill a disk.
// Of each kind of line, the first perMinute ones of a minute are written. The others are counted, and the next written
// line has their number in "suppressed".
package sparselog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	perMinute = 20
	maxKinds  = 64
)

// Limit limits one kind of line. The zero value has seen none. All goroutines may use it.
type Limit struct {
	mu         sync.Mutex
	began      time.Time // of the current minute
	lines      int       // in it
	suppressed int       // since the last written line
}

// Admit reports whether a line is to be written, and how many were suppressed before it.
func (l *Limit) Admit(now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() || now.Sub(l.began) >= time.Minute {
		l.began, l.lines = now, 0
	}
	if l.lines++; l.lines > perMinute {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

// Warn writes a warning, unless there are too many.
func (l *Limit) Warn(to *slog.Logger, msg string, args ...any) { l.log(to, slog.LevelWarn, msg, args) }

// Info writes a line, unless there are too many.
func (l *Limit) Info(to *slog.Logger, msg string, args ...any) { l.log(to, slog.LevelInfo, msg, args) }

func (l *Limit) log(to *slog.Logger, level slog.Level, msg string, args []any) {
	suppressed, ok := l.Admit(time.Now())
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	to.Log(context.Background(), level, msg, args...)
}

// Handler limits the lines of a log. Lines are of one kind if their messages are equal up to the first digit.
func Handler(h slog.Handler) slog.Handler {
	return handler{h, &kinds{limits: make(map[string]*Limit)}}
}

type handler struct {
	slog.Handler
	kinds *kinds
}

type kinds struct {
	mu     sync.Mutex
	limits map[string]*Limit
}

func (k *kinds) of(msg string) *Limit {
	if i := strings.IndexAny(msg, "0123456789"); i >= 0 {
		msg = msg[:i]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limits[msg]
	if l == nil {
		if len(k.limits) == maxKinds { // peers may choose parts of messages
			msg = ""
		}
		if l = k.limits[msg]; l == nil {
			l = new(Limit)
			k.limits[msg] = l
		}
	}
	return l
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	suppressed, ok := h.kinds.of(r.Message).Admit(r.Time)
	if !ok {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.kinds}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.kinds}
}
