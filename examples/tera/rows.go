package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	rowSize = 100
	keySize = 10
)

// uint128 is an unsigned number of 128 bits. Sums and products wrap.
type uint128 struct{ hi, lo uint64 }

func (a uint128) add(b uint128) uint128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return uint128{a.hi + b.hi + carry, lo}
}

func (a uint128) mul(b uint128) uint128 {
	hi, lo := bits.Mul64(a.lo, b.lo)
	return uint128{hi + a.hi*b.lo + a.lo*b.hi, lo}
}

func (a uint128) String() string {
	if a.hi == 0 {
		return fmt.Sprintf("%x", a.lo)
	}
	return fmt.Sprintf("%x%016x", a.hi, a.lo)
}

// step is a step x → a·x + c of the linear congruential generator, or several steps in one.
type step struct{ a, c uint128 }

var one = step{a: uint128{0x2360ed051fc65da4, 0x4385df649fccf645}, c: uint128{0x4a696d4772617952, 0x4950202020202001}}

func (s step) from(x uint128) uint128 { return s.a.mul(x).add(s.c) }

// after returns the number after n steps from 0. It doubles steps, so it takes at most 64 rounds.
func after(n uint64) (x uint128) {
	for s := one; n > 0; n >>= 1 {
		if n&1 == 1 {
			x = s.from(x)
		}
		s = step{s.a.mul(s.a), s.from(s.c)}
	}
	return x
}

// appendRow appends row n, which has the random number after n+1 steps:
//
//	10 bytes     key: the number's first bytes
//	 2 bytes     00 11
//	32 digits    n, hexadecimal
//	 4 bytes     88 99 AA BB
//	48 digits    the number's last 12 hexadecimal digits, each four times
//	 4 bytes     CC DD EE FF
func appendRow(dst []byte, random uint128, n uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, random.hi)
	dst = binary.BigEndian.AppendUint16(dst, uint16(random.lo>>48))
	dst = append(dst, 0x00, 0x11)
	dst = fmt.Appendf(dst, "%032X", n)
	dst = append(dst, 0x88, 0x99, 0xAA, 0xBB)
	for shift := 44; shift >= 0; shift -= 4 {
		digit := "0123456789ABCDEF"[random.lo>>shift&15]
		dst = append(dst, digit, digit, digit, digit)
	}
	return append(dst, 0xCC, 0xDD, 0xEE, 0xFF)
}
