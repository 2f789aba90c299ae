package gossip

import (
	"log"
	"strings"
	"sync"
	"time"
)

// lines takes memberlist's log, which is also the only place where it tells whom
// it suspects and that UDP fails where TCP works.
type lines struct {
	g *Gossip

	mu   sync.Mutex
	said map[string]time.Time // by text without digits
}

func (g *Gossip) memberlistLogger() *log.Logger {
	return log.New(&lines{g: g, said: make(map[string]time.Time)}, "", 0)
}

// Write takes one line: "[LEVEL] memberlist: text".
func (l *lines) Write(line []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	text = strings.TrimPrefix(text, "memberlist: ")
	if rest, ok := strings.CutPrefix(text, "Suspect "); ok {
		name, _, _ := strings.Cut(rest, " ")
		l.g.suspect(name, true)
	}
	if rest, ok := strings.CutPrefix(text, "Was able to connect to "); ok {
		name, _, _ := strings.Cut(rest, " ")
		l.g.doubt(name)
	}
	if (level == "[ERR]" || level == "[WARN]") && !l.ours(text) && l.first(text) {
		l.g.log.Warn("gossip: memberlist says", "what", text)
	} else {
		l.g.log.Debug("gossip: memberlist says", "what", text)
	}
	return len(line), nil
}

// ours are troubles that this package reports itself, or that are none: another
// process with our id is refuted, a predecessor's name is pinged in vain.
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

const mostSaid = 256

// first says whether the like was not said lately.
func (l *lines) first(text string) bool {
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.said[kind]; ok && time.Since(last) < sayAgain {
		return false
	}
	if len(l.said) >= mostSaid {
		clear(l.said)
	}
	l.said[kind] = time.Now()
	return true
}
