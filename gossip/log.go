package gossip

import (
	"log"
	"strings"
	"sync"
	"time"
)

// lines receives memberlist's log. memberlist reports in no other way which members it
// suspects, and that UDP fails where TCP works.
type lines struct {
	g *Gossip

	mu     sync.Mutex
	logged map[string]time.Time // when, by text without digits
}

func (g *Gossip) memberlistLogger() *log.Logger {
	return log.New(&lines{g: g, logged: make(map[string]time.Time)}, "", 0)
}

// Write takes one line: "[LEVEL] memberlist: text".
func (l *lines) Write(line []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	text = strings.TrimPrefix(text, "memberlist: ")
	if rest, ok := strings.CutPrefix(text, "Suspect "); ok {
		name, _, _ := strings.Cut(rest, " ")
		l.g.setSuspect(name, true)
	}
	if rest, ok := strings.CutPrefix(text, "Was able to connect to "); ok {
		name, _, _ := strings.Cut(rest, " ")
		l.g.requestCheck(name)
	}
	if (level == "[ERR]" || level == "[WARN]") && !l.ours(text) && l.first(text) {
		l.g.log.Warn("gossip: memberlist says", "what", text)
	} else {
		l.g.log.Debug("gossip: memberlist says", "what", text)
	}
	return len(line), nil
}

// ours reports whether this package logs the failure itself, or whether it is expected.
// Two are expected: memberlist refutes a process with our id, and pings a predecessor's
// name.
func (l *lines) ours(text string) bool {
	for _, known := range []string{
		"Was able to connect", "Failed to send UDP", "Failed to send indirect UDP", "Failed fallback TCP ping",
		"ignoring alive message", "Refuting", "Got ping for unexpected node", "Binding to public address",
		"Failed to send gossip", "Push/Pull with", "Failed push/pull merge",
	} {
		if strings.HasPrefix(text, known) {
			return true
		}
	}
	return false
}

const maxLogged = 256

// first reports whether no similar text was logged lately.
func (l *lines) first(text string) bool {
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.logged[kind]; ok && time.Since(last) < logAgain {
		return false
	}
	if len(l.logged) >= maxLogged {
		clear(l.logged)
	}
	l.logged[kind] = time.Now()
	return true
}
