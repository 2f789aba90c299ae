// Package javatext prints floating-point numbers and JSON strings, decodes UTF-8 and hashes texts as Java does, so that files and output can be
// compared with Hadoop's. Tests of package mapreduce compare it with Hadoop's output.
package javatext

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
)

// AppendFloat prints v as Double.toString does in Java 8 to 18, the versions that Hadoop
// uses. If size is 32, it prints as Float.toString. Numbers from 0.001 to below
// 10,000,000 are plain, others like 1.0E10. There is always a digit on both sides of the
// point.
//
// Plain numbers have the shortest digits that parse back to v, as in strconv. For other
// numbers Java has its own algorithms: see appendWhole and javaDigits.
func AppendFloat(dst []byte, v float64, size int) []byte {
	abs := math.Abs(v)
	switch {
	case v != v:
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		start := len(dst)
		dst = strconv.AppendFloat(dst, v, 'f', -1, size)
		if bytes.IndexByte(dst[start:], '.') >= 0 {
			return dst
		}
		return append(dst, ".0"...)
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	b := decompose(abs, size)
	if b.exponent <= 62 && abs == math.Trunc(abs) {
		return appendWhole(dst, uint64(abs), b.exponent-b.precision-1)
	}
	var buf [32]byte
	digits, exponent := javaDigits(buf[:0], b)
	return appendDigits(dst, digits, exponent)
}

// appendWhole prints a whole number in scientific form. The number has spare bits more
// than its type's mantissa plus one. Java rounds away the decimal digits that these hold.
func appendWhole(dst []byte, n uint64, spare int) []byte {
	drop := 0
	if spare > 1 {
		drop = spare * 1233 >> 12 // spare·log10(2), exact up to 2^62
	}
	if drop > 0 {
		unit := uint64(1)
		for range drop {
			unit *= 10
		}
		rest := n % unit
		n /= unit
		if rest >= unit/2 {
			n++
		}
	}
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], n, 10)
	exponent := len(digits) - 1 + drop
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return appendDigits(dst, digits, exponent)
}

func appendDigits(dst, digits []byte, exponent int) []byte {
	dst = append(dst, digits[0], '.')
	if len(digits) == 1 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[1:]...)
	dst = append(dst, 'E')
	return strconv.AppendInt(dst, int64(exponent), 10)
}

// binaryFloat is a decomposed positive floating-point number.
type binaryFloat struct {
	fraction  uint64 // 53 bits, the highest of them set
	exponent  int    // of that highest bit
	precision int    // bits that the number's type has for a fraction of its size
}

func decompose(abs float64, size int) binaryFloat {
	b := math.Float64bits(abs)
	fraction, exponent := b&(1<<52-1), int(b>>52)-1023
	lowest, mantissa := -1022, 53 // of the normal numbers of the type
	if size == 32 {
		lowest, mantissa = -126, 24
	}
	if exponent == -1023 {
		shift := bits.LeadingZeros64(fraction) - 11
		fraction <<= shift
		exponent -= shift - 1
	} else {
		fraction |= 1 << 52
	}
	return binaryFloat{fraction, exponent, mantissa - max(0, lowest-exponent)}
}
