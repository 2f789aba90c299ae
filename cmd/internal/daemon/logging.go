package daemon

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Logging says what a daemon logs, and in which format.
type Logging struct {
	level slog.Level
	json  bool
}

// Flags defines the flags of l.
func (l *Logging) Flags(set *flag.FlagSet) {
	set.TextVar(&l.level, "log-level", slog.LevelInfo, "least `level` of log lines: debug, info, warn or error")
	set.BoolFunc("v", "the same as -log-level debug", func(text string) error {
		if text != "true" {
			return errors.New("it takes no value")
		}
		l.level = slog.LevelDebug
		return nil
	})
	set.Func("log-format", "`format` of log lines: text or json, one object a line (default text)", func(text string) error {
		if l.json = text == "json"; !l.json && text != "text" {
			return fmt.Errorf("want text or json")
		}
		return nil
	})
}

// Logger makes the logger.
func (l *Logging) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.level}
	if !l.json {
		return slog.New(slog.NewTextHandler(w, options))
	}
	options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case error, slog.Level, time.Time: // the handler writes them as texts
		case fmt.Stringer: // ids and durations, as in the text format
			a.Value = slog.StringValue(v.String())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
