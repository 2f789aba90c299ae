package core

import (
	"fmt"
	"math"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestNextSkip checks the range that follows from the record in which an attempt ended. If skipping
// does not help, it grows up to its limit.
func TestNextSkip(t *testing.T) {
	list := func(bounds ...int64) (ranges []wire.RecordRange) {
		for i := 0; i < len(bounds); i += 2 {
			ranges = append(ranges, wire.RecordRange{From: bounds[i], To: bounds[i+1]})
		}
		return ranges
	}
	for _, c := range []struct {
		ranges       []wire.RecordRange
		record, most int64
		want         string
	}{
		{nil, 0, 1, "{0 1}"},
		{nil, 500, 1000, "{500 501}"},
		{list(7, 8), 500, 1000, "{500 501}"},
		{list(7, 8), 9, 1000, "{9 10}"}, // record 8 did not end the attempt
		{list(7, 8), 8, 1, "{8 9}"},
		{list(7, 8), 8, 1000, "{6 9}"},
		{list(7, 8), 8, 2, "{7 9}"},
		{list(6, 9), 9, 1000, "{3 10}"},
		{list(6, 9), 11, 1000, "{1 12}"},
		{list(6, 9), 12, 1000, "{12 13}"},
		{list(6, 9), 9, 3, "{9 10}"}, // it has its limit
		{list(6, 9), 5, 1000, "{5 6}"},
		{list(6, 9), 9, 5, "{5 10}"},
		{list(0, 9), 9, math.MaxInt64, "{0 10}"},
		{list(8, 9, 6, 7), 9, 1000, "{9 10}"},
	} {
		if got := fmt.Sprint(nextSkip(c.ranges, c.record, c.most)); got != c.want {
			t.Errorf("after %v an attempt ends in %d: %s, want %s", c.ranges, c.record, got, c.want)
		}
	}
}

// TestSkipConverges: code that processes records in batches fails after the bad record was read. The
// ranges grow until it succeeds, in attempts that grow with the logarithm of the batch.
func TestSkipConverges(t *testing.T) {
	for _, batch := range []int64{1, 2, 10, 100, 1000} {
		const records = 100_000
		bad := int64(1234)
		var ranges []wire.RecordRange
		skips := func(n int64) bool {
			for _, r := range ranges {
				if r.From <= n && n < r.To {
					return true
				}
			}
			return false
		}
		attempts, failed := 0, true
		for ; failed && attempts < 40; attempts++ {
			inBatch, hasBad := int64(0), false
			failed = false
			for n := int64(0); n < records && !failed; n++ {
				if skips(n) {
					continue
				}
				hasBad = hasBad || n == bad
				if inBatch++; inBatch == batch {
					if failed = hasBad; failed {
						r := nextSkip(ranges, n, 10*batch)
						if last := len(ranges) - 1; last >= 0 && r.From <= ranges[last].From {
							ranges = ranges[:last]
						}
						ranges = append(ranges, r)
					}
					inBatch, hasBad = 0, false
				}
			}
		}
		t.Logf("batches of %d: %d attempts skip %v", batch, attempts, ranges)
		if failed || !skips(bad) {
			t.Errorf("batches of %d: after %d attempts, %v are skipped", batch, attempts, ranges)
		}
	}
}
