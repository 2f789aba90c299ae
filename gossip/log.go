package gossip

import (
	"log"
	"strings"
	"sync"
	"time"
)

// memberlistLog receives memberlist's log. Only this log shows which members memberlist suspects,
// and that UDP to a member fails but TCP works.
type memberlistLog struct {
	g *Gossip

	mu     sync.Mutex
	logged map[string]time.Time // by text without digits: when it was last logged
}

func (g *Gossip) memberlistLogger() *log.Logger {
	return log.New(&memberlistLog{g: g, logged: make(map[string]time.Time)}, "", 0)
}

// Write takes one line: "[LEVEL] memberlist: text".
func (l *memberlistLog) Write(line []byte) (int, error) {
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
	if (level == "[ERR]" || level == "[WARN]") && !l.isExpected(text) && l.isNew(text) {
		l.g.log.Warn("gossip: memberlist says", "what", text)
	} else {
		l.g.log.Debug("gossip: memberlist says", "what", text)
	}
	return len(line), nil
}

// isExpected reports whether a message needs no warning: this package logs the failure itself, or
// it is normal. For example, memberlist may ping the name of a predecessor.
func (l *memberlistLog) isExpected(text string) bool {
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

// isNew reports whether no similar text was logged within repeatPause.
func (l *memberlistLog) isNew(text string) bool {
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.logged[kind]; ok && time.Since(last) < repeatPause {
		return false
	}
	if len(l.logged) >= maxLogged {
		clear(l.logged)
	}
	l.logged[kind] = time.Now()
	return true
}
