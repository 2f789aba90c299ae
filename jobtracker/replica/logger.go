package replica

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/quernmr/quern/sparselog"
)

// logger sends raft's messages to a slog.Logger at a lower level, because raft retries most of the
// errors that it reports.
type logger struct {
	hclog.Logger // for methods that raft does not call
	to           *slog.Logger
}

func newLogger(to *slog.Logger) hclog.Logger {
	return &logger{Logger: hclog.NewNullLogger(), to: slog.New(sparselog.Handler(to.Handler()))}
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Warn:
		to = slog.LevelInfo
	case hclog.Error:
		to = slog.LevelWarn
	}
	if !l.to.Enabled(context.Background(), to) {
		return
	}
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 {
			args[i] = slog.AnyValue(f[1:])
		}
	}
	l.to.Log(context.Background(), to, "raft: "+msg, args...)
}

func (l *logger) Trace(msg string, args ...any) {}
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{Logger: l.Logger, to: l.to.With(args...)}
}
func (l *logger) Named(string) hclog.Logger      { return l }
func (l *logger) ResetNamed(string) hclog.Logger { return l }
