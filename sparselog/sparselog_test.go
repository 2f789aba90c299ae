package sparselog

import (
	"bytes"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandler: of many lines of one kind, some are written, and the next one after a minute counts the others. Another kind
// of line is written all the while.
func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		to := slog.NewLogLogger(Handler(slog.NewTextHandler(&text, nil)).WithAttrs([]slog.Attr{slog.String("id", "jt1")}), slog.LevelWarn)
		flood := func(to *log.Logger) {
			for port := range 1000 {
				to.Printf("TLS handshake error from 10.0.0.1:%d", port)
			}
		}
		flood(to)
		to.Print("panic")
		if n := strings.Count(text.String(), "\n"); n != perMinute+1 || !strings.Contains(text.String(), "msg=panic id=jt1\n") {
			t.Errorf("%d lines of 1001: %s", n, &text)
		}
		text.Reset()
		<-time.After(time.Minute) // virtual
		flood(to)
		first, rest, _ := strings.Cut(text.String(), "\n")
		if want := fmt.Sprint("suppressed=", 1000-perMinute); !strings.HasSuffix(first, want) || strings.Contains(rest, "suppressed") {
			t.Errorf("the first line is %q, want %s", first, want)
		}
	})
}

// TestKinds: peers that choose the text of messages do not fill the memory or the log.
func TestKinds(t *testing.T) {
	var text bytes.Buffer
	h := Handler(slog.NewTextHandler(&text, nil))
	to := slog.New(h)
	for n := range 10_000 {
		to.Warn(strings.Repeat("x", n))
	}
	if n := strings.Count(text.String(), "\n"); n > maxKinds+perMinute || len(h.(handler).kinds.limits) > maxKinds+1 {
		t.Errorf("%d lines, %d kinds", n, len(h.(handler).kinds.limits))
	}
}
