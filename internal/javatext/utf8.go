package javatext

import "unicode/utf8"

// AppendUTF8 appends text as Java decodes it: each malformed part becomes one U+FFFD.
func AppendUTF8(dst []byte, text string) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			n = malformed(text)
		}
		dst, text = utf8.AppendRune(dst, r), text[n:]
	}
	return dst
}

// malformed returns the length of the malformed part at the begin of a text: the begin of a character, a surrogate, or
// one byte.
func malformed(text string) int {
	length, low, high := 1, byte(0x80), byte(0xbf) // of the character, and bounds of its second byte
	switch b := text[0]; {
	case b >= 0xc2 && b <= 0xdf:
		length = 2
	case b == 0xe0:
		length, low = 3, 0xa0
	case b > 0xe0 && b <= 0xef: // with the surrogates
		length = 3
	case b == 0xf0:
		length, low = 4, 0x90
	case b > 0xf0 && b < 0xf4:
		length = 4
	case b == 0xf4:
		length, high = 4, 0x8f
	}
	n := 1
	for n < min(length, len(text)) && text[n] >= low && text[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
