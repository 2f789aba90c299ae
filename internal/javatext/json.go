package javatext

import (
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are those of Java's library Jackson.
var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}

// AppendJSON appends a text as a string of JSON, as Jackson writes it in UTF-8.
func AppendJSON(dst []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = string(AppendUTF8(nil, text))
	}
	dst = append(dst, '"')
	for _, c := range text {
		switch high, low := utf16.EncodeRune(c); {
		case escapes[c] != "":
			dst = append(dst, escapes[c]...)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04X`, c)
		case c > '\uffff':
			dst = fmt.Appendf(dst, `\u%04X\u%04X`, high, low)
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}

// AppendJSONBytes appends bytes as a string of JSON with a character up to U+00FF for each, as Avro's encoding does.
func AppendJSONBytes(dst, b []byte) []byte {
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = rune(c)
	}
	return AppendJSON(dst, string(text))
}

// AppendJSONFloat appends a number as AppendFloat does, or a string for what is none.
func AppendJSONFloat(dst []byte, v float64, size int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(AppendFloat(append(dst, '"'), v, size), '"')
	}
	return AppendFloat(dst, v, size)
}
