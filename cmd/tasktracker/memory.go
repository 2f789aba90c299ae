package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var errSize = errors.New("want a number of bytes, or one with a unit: 512m, 16g, 1t")

// setMemory sets -memory; 0: slots alone count.
func (o *options) setMemory(s string) (err error) {
	n, err := parseSize(s)
	if err == nil {
		o.memory = n
	}
	return err
}

// parseSize reads a number of bytes, which may end in k, m, g or t: powers of 1024.
func parseSize(s string) (int64, error) {
	digits, unit := strings.ToLower(s), int64(1)
	if i := strings.IndexAny(digits, "kmgt"); i >= 0 && i == len(digits)-1 {
		unit <<= 10 * (1 + strings.IndexByte("kmgt", digits[i]))
		digits = digits[:i]
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, errSize
	}
	return n * unit, nil
}
