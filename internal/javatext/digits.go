package javatext

import (
	"math"
	"math/big"
	"math/bits"
)

// javaDigits returns the decimal digits of a number with an exponent, as Java before
// 19 computes them, with the algorithm of Steele and White. The number is b/s·10^e, and
// half the distance to its neighbours is m/s·10^e. Digits are generated until the
// remainder is within m of one side.
//
// Java differs from that algorithm in these points:
//
//   - Next to a power of two, it uses the smaller of the two distances for both.
//   - A remainder of exactly m does not end the digits, except at the upper side with
//     more than 64 bits.
//   - It prints at least two digits if the estimated exponent is outside -3 to 7.
//   - It estimates the operands to choose 32, 64 or more bits. 32 and 64 bits may
//     overflow.
func javaDigits(dst []byte, f binaryFloat) (digits []byte, exponent int) {
	tail := bits.TrailingZeros64(f.fraction)
	width := 53 - tail // bits of the fraction without its trailing zeros
	fraction := f.fraction >> tail
	tiny := max(0, width-f.exponent-1)

	decimal := estimateExponent(f)
	b5, s5 := max(0, -decimal), max(0, decimal)
	b2, s2 := b5+tiny+f.exponent, s5+tiny
	m5, m2 := b5, b2-f.precision
	b2 -= width - 1
	common := min(b2, s2)
	b2, s2, m2 = b2-common, s2-common, m2-common
	if width == 1 {
		m2--
	}
	if m2 < 0 {
		b2, s2, m2 = b2-m2, s2-m2, 0
	}

	needB, needS := width+b2+bitsOf5(b5), s2+1+bitsOf5(s5+1)
	g := digitBuffer{dst: dst, exponent: decimal}
	switch {
	case needB < 32 && needS < 32:
		generateDigits(&g, int32(fraction)*int32(power5(b5))<<b2, int32(power5(s5))<<s2, int32(power5(m5))<<m2)
	case needB < 64 && needS < 64:
		generateDigits(&g, int64(fraction)*power5(b5)<<b2, power5(s5)<<s2, power5(m5)<<m2)
	default:
		generateDigitsBig(&g, scaled(fraction, b5, b2), scaled(1, s5, s2), scaled(1, m5, m2))
	}
	return g.dst, g.exponent
}

// estimateExponent returns the decimal exponent, or one more. The conversions prevent
// fused multiply-add, so that all machines have the same estimate.
func estimateExponent(f binaryFloat) int {
	mantissa := math.Float64frombits(f.fraction&(1<<52-1) | 1023<<52)
	d := float64((mantissa-1.5)*0.289529654) + 0.176091259
	return int(math.Floor(d + float64(float64(f.exponent)*0.301029995663981)))
}

func power5(n int) int64 {
	p := int64(1)
	for range n {
		p *= 5
	}
	return p
}

// bitsOf5 returns the number of bits of 5^n, estimated if n is large.
func bitsOf5(n int) int {
	switch {
	case n == 0:
		return 0
	case n < 27:
		return bits.Len64(uint64(power5(n)))
	}
	return 3 * n
}

func scaled(n uint64, fives, twos int) *big.Int {
	v := new(big.Int).SetUint64(n)
	v.Mul(v, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(fives)), nil))
	return v.Lsh(v, uint(twos))
}

type digitBuffer struct {
	dst      []byte
	exponent int
}

// first appends the first digit, which is 0 if the exponent's estimate is one too high.
// It reports whether the number may end here.
func (g *digitBuffer) first(q byte) (mayEnd bool) {
	if q == 0 {
		g.exponent--
	} else {
		g.dst = append(g.dst, '0'+q)
	}
	return g.exponent >= -3 && g.exponent < 8
}

// last rounds the last digit. half is the remainder compared with half a unit of the
// digit: negative, 0 or positive.
func (g *digitBuffer) last(low, high bool, half int) {
	odd := g.dst[len(g.dst)-1]&1 != 0
	if high && (!low || half > 0 || half == 0 && odd) {
		g.roundUp()
	}
}

func (g *digitBuffer) roundUp() {
	i := len(g.dst) - 1
	for i > 0 && g.dst[i] == '9' {
		g.dst[i] = '0'
		i--
	}
	if g.dst[i] == '9' {
		g.dst[i] = '1'
		g.exponent++
		return
	}
	g.dst[i]++
}

func generateDigits[T int32 | int64](g *digitBuffer, b, s, m T) {
	tens := s * 10
	q := b / s
	b, m = 10*(b%s), m*10
	low, high := b < m, b+m > tens
	if !g.first(byte(q)) {
		low, high = false, false
	}
	for !low && !high {
		q = b / s
		b, m = 10*(b%s), m*10
		low, high = true, true
		if m > 0 { // otherwise m has overflowed: it counts as larger than b and tens
			low, high = b < m, b+m > tens
		}
		g.dst = append(g.dst, '0'+byte(q))
	}
	difference := b<<1 - tens
	switch {
	case difference < 0:
		g.last(low, high, -1)
	case difference > 0:
		g.last(low, high, 1)
	default:
		g.last(low, high, 0)
	}
}

func generateDigitsBig(g *digitBuffer, b, s, m *big.Int) {
	ten := big.NewInt(10)
	tens := new(big.Int).Mul(s, ten)
	q, sum := new(big.Int), new(big.Int)
	step := func() (digit byte, low, high bool) {
		q.QuoRem(b, s, b)
		b.Mul(b, ten)
		m.Mul(m, ten)
		return byte(q.Uint64()), b.Cmp(m) < 0, tens.Cmp(sum.Add(b, m)) <= 0
	}
	digit, low, high := step()
	if !g.first(digit) {
		low, high = false, false
	}
	for !low && !high {
		digit, low, high = step()
		g.dst = append(g.dst, '0'+digit)
	}
	g.last(low, high, sum.Lsh(b, 1).Cmp(tens))
}
