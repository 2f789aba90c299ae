package skew

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestSizes compares Sizes with a list of all partitions: homes report in any order, and may begin again.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "partitions")
		var s Sizes
		sizes, plain := make([]Size, n), make(map[int]int64)
		for range rapid.IntRange(0, 80).Draw(t, "reports") {
			p := rapid.IntRange(0, n-1).Draw(t, "partition")
			bytes := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, math.MaxInt64/64)).Draw(t, "bytes")
			s.Set(&sizes[p], p, bytes)
			plain[p] = max(plain[p], bytes)
		}
		check(t, &s, n, plain)
		checkLarge(t, &s, n, plain)
	})
}

// checkLarge compares Large with a search of all partitions. It may find any, of at most ten.
func checkLarge(t *rapid.T, s *Sizes, n int, plain map[int]int64) {
	among := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "among")
	want, sum := -1, int64(0)
	for _, bytes := range plain {
		sum += bytes
	}
	for p := range n {
		if bytes, ok := plain[p]; ok && among[p] && bytes > 0 && bytes >= 2*(sum/int64(len(plain))) && (want < 0 || bytes > plain[want]) {
			want = p
		}
	}
	got := s.Large(func(p int) bool { return among[p] })
	if got != want && n <= wire.MaxLargest || got >= 0 && got != want {
		t.Fatalf("the large partition is %d, want %d: %v among %v", got, want, plain, among)
	}
}

func check(t *rapid.T, s *Sizes, n int, plain map[int]int64) {
	x := s.Status(n, 3)
	if len(plain) == 0 {
		if x != nil {
			t.Fatalf("%+v without a report", x)
		}
		return
	}
	var all []wire.PartitionSize
	sum, sizes := int64(0), []int64(nil)
	for p, bytes := range plain {
		all, sizes = append(all, wire.PartitionSize{Partition: p, Bytes: bytes}), append(sizes, bytes)
		sum += bytes
	}
	slices.Sort(sizes)
	slices.SortFunc(all, func(a, b wire.PartitionSize) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Partition, b.Partition))
	})
	if want := all[:min(len(all), wire.MaxLargest)]; !reflect.DeepEqual(x.Largest, want) {
		t.Fatalf("largest %v, want %v", x.Largest, want)
	}
	if x.Total != n || x.Gathered != 3 || x.Known != len(all) || x.Bytes != sum {
		t.Fatalf("%+v, want %d of %d partitions with %d bytes", x, len(all), n, sum)
	}
	if median := sizes[len(sizes)/2]; max(x.Median-median, median-x.Median) > median/8+1 {
		t.Fatalf("median %d of %v", x.Median, sizes)
	}
	last, left := int64(0), sizes
	for _, b := range x.Buckets {
		k, _ := slices.BinarySearch(left, b.To)
		if b.From < last || b.From >= b.To || b.Partitions == 0 || k != b.Partitions || left[0] < b.From {
			t.Fatalf("bucket %+v after %d, of %v", b, last, left)
		}
		last, left = b.To, left[k:]
	}
	if len(left) > 0 || len(x.Buckets) > wire.MaxSizeBuckets {
		t.Fatalf("%d buckets lack %v", len(x.Buckets), left)
	}
}

// TestBuckets tests that each size is in the bucket between two bounds.
func TestBuckets(t *testing.T) {
	for power := range 63 {
		for _, n := range []int64{1<<power - 1, 1 << power, 1<<power + 1, 1<<power + 1<<power/2} {
			b := bucketOf(n)
			if b < 0 || b >= wire.MaxSizeBuckets || n < boundOf(b) || n > boundOf(b+1)-1 && n != math.MaxInt64 {
				t.Errorf("%d is in bucket %d, from %d to %d", n, b, boundOf(b), boundOf(b+1))
			}
		}
	}
}
