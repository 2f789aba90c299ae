package top

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is a terminal in raw mode that shows its alternate screen.
type screen struct {
	in, out *os.File
	before  *term.State
}

const (
	enter = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leave = "\x1b[?25h\x1b[?1049l"
)

func open(in, out *os.File) (*screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read single keys from the terminal: %w", err)
	}
	s := &screen{in, out, before}
	if _, err := out.WriteString(enter); err != nil {
		term.Restore(int(in.Fd()), before)
		return nil, fmt.Errorf("draw on the terminal: %w", err)
	}
	return s, nil
}

func (s *screen) close() {
	s.out.WriteString(leave)
	term.Restore(int(s.in.Fd()), s.before)
}

// size returns columns and lines. A terminal that does not tell has 80 and 24.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// draw overwrites the screen. It does not clear it first, which would flicker.
func (s *screen) draw(text string) error {
	_, err := s.out.WriteString("\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\r\n") + "\x1b[K\x1b[J")
	return err
}

// readKeys sends keys until the terminal has no more. A read cannot be cancelled: the end of the
// process ends it.
func (s *screen) readKeys(send func(message)) {
	buf := make([]byte, 256)
	have := 0
	for {
		n, err := s.in.Read(buf[have:])
		if err != nil {
			send(Key("ctrl+c"))
			return
		}
		keys, rest := parseKeys(buf[:have+n])
		for _, k := range keys {
			send(k)
		}
		have = copy(buf, rest)
	}
}

// parseKeys returns the keys that bytes from a terminal stand for, and the incomplete character at their
// end. An escape character alone is the key, since terminals write their sequences at once.
func parseKeys(b []byte) (keys []Key, rest []byte) {
	for len(b) > 0 {
		if b[0] == '\x1b' {
			key, n := parseEscape(b)
			if key != "" {
				keys = append(keys, key)
			}
			b = b[n:]
			continue
		}
		if !utf8.FullRune(b) {
			return keys, b
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case r == '\r' || r == '\n':
			keys = append(keys, "enter")
		case r == '\x7f' || r == '\b':
			keys = append(keys, "backspace")
		case r == '\x03':
			keys = append(keys, "ctrl+c")
		case unicode.IsPrint(r):
			keys = append(keys, Key(string(r)))
		}
	}
	return keys, nil
}

// parseEscape returns the key that an escape sequence stands for, empty for one without a meaning here,
// and its length. A sequence is ESC [ or ESC O, parameters, and a byte from @ to ~ (ECMA-48, 5.4).
func parseEscape(b []byte) (Key, int) {
	if len(b) == 1 || b[1] != '[' && b[1] != 'O' {
		return "esc", 1
	}
	for i := 2; i < len(b); i++ {
		if b[i] < '@' || b[i] > '~' {
			continue
		}
		switch string(b[2 : i+1]) {
		case "A":
			return "up", i + 1
		case "B":
			return "down", i + 1
		case "5~":
			return "pgup", i + 1
		case "6~":
			return "pgdown", i + 1
		}
		return "", i + 1
	}
	return "", len(b)
}
