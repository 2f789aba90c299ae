package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed reports bytes that are not a message body: truncated, nested too deeply, or with
// lengths beyond the data.
var ErrMalformed = errors.New("malformed message")

// maxDepth limits the nesting of values, because a reader skips unknown fields recursively. Quern's
// messages are nested 6 deep.
const maxDepth = 64

// checkShape reads one msgpack value without decoding it. The decoder trusts lengths, and allocates
// memory for them at once. So checkShape first checks that every element has at least one byte of
// data, and that nothing follows the value.
func checkShape(data []byte) error {
	var stack [maxDepth]int // values still expected on each level
	depth, at := 0, 0
	stack[0] = 1
	for {
		for stack[depth] == 0 {
			if depth == 0 {
				if at < len(data) {
					return fmt.Errorf("%w: %d bytes after the value", ErrMalformed, len(data)-at)
				}
				return nil
			}
			depth--
		}
		stack[depth]--
		head, payload, values, ok := measure(data[at:])
		rest := len(data) - at - head
		if !ok || payload > rest || values > rest {
			return fmt.Errorf("%w: it breaks off at byte %d of %d", ErrMalformed, at, len(data))
		}
		at += head + payload
		if values > 0 {
			if depth++; depth == maxDepth {
				return fmt.Errorf("%w: nested deeper than %d", ErrMalformed, maxDepth)
			}
			stack[depth] = values
		}
	}
}

// measure returns the sizes of the first value of data: bytes of its head, bytes of its payload,
// and number of values within it. It fails if the head is truncated, and for extension types, which
// no message uses.
func measure(data []byte) (head, payload, values int, ok bool) {
	if len(data) == 0 {
		return 0, 0, 0, false
	}
	c := data[0]
	switch {
	case c <= 0x7f || c >= 0xe0: // small integer
		return 1, 0, 0, true
	case c <= 0x8f:
		return 1, 0, 2 * int(c&0x0f), true
	case c <= 0x9f:
		return 1, 0, int(c & 0x0f), true
	case c <= 0xbf:
		return 1, int(c & 0x1f), 0, true
	}
	switch c {
	case 0xc0, 0xc2, 0xc3: // nil, false, true
		return 1, 0, 0, true
	case 0xcc, 0xd0:
		return 1, 1, 0, true
	case 0xcd, 0xd1:
		return 1, 2, 0, true
	case 0xca, 0xce, 0xd2:
		return 1, 4, 0, true
	case 0xcb, 0xcf, 0xd3:
		return 1, 8, 0, true
	}
	width := 0
	switch c {
	case 0xc4, 0xd9: // bin8, str8
		width = 1
	case 0xc5, 0xda, 0xdc, 0xde: // bin16, str16, array16, map16
		width = 2
	case 0xc6, 0xdb, 0xdd, 0xdf: // bin32, str32, array32, map32
		width = 4
	}
	if width == 0 || len(data) < 1+width {
		return 0, 0, 0, false
	}
	var length [4]byte
	copy(length[4-width:], data[1:1+width])
	n := int(binary.BigEndian.Uint32(length[:]))
	switch c {
	case 0xdc, 0xdd:
		return 1 + width, 0, n, true
	case 0xde, 0xdf:
		return 1 + width, 0, 2 * n, true
	}
	return 1 + width, n, 0, true
}
