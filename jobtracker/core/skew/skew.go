// Package skew says how unevenly a job's map output is spread, in a bounded form: a job may have a million
// partitions.
//
// Package core reports sizes as homes gather, and hot keys as homes merge and reduces read; each report costs O(1). Everything here is deterministic and
// reads no clock. Nothing is safe for concurrent use.
//
// # Invariants
//
//	K1  The size of a partition only grows: it is the most that a home has gathered. A home that
//	    begins again, or moves, changes no size.
//	K2  The partitions in all buckets are the partitions with a known size, and the largest ones
//	    are exact. Of equal ones, the lower number comes first.
package skew

import (
	"math/bits"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Sizes holds the sizes of a job's partitions. Its zero value is ready.
type Sizes struct {
	buckets []int32 // partitions, by bucketOf their size; the last one is not empty
	largest []wire.PartitionSize
	known   int
	bytes   int64
}

// Size is what a partition's owner keeps of it: 1 + its size, 0 if it is not known.
type Size int64

// Set says that a home has gathered bytes of a partition. size is what earlier calls have kept.
func (s *Sizes) Set(size *Size, partition int, bytes int64) {
	bytes = max(bytes, 0)
	old := int64(*size) - 1
	if bytes <= old {
		return
	}
	*size = Size(bytes + 1)
	if old >= 0 {
		s.buckets[bucketOf(old)]--
	} else {
		s.known++
	}
	b := bucketOf(bytes)
	if more := b + 1 - len(s.buckets); more > 0 {
		s.buckets = append(s.buckets, make([]int32, more)...)
	}
	s.buckets[b]++
	s.bytes += bytes - max(old, 0)
	s.rank(wire.PartitionSize{Partition: partition, Bytes: bytes})
}

// rank moves a partition that has grown to its place among the largest ones.
func (s *Sizes) rank(x wire.PartitionSize) {
	at := slices.IndexFunc(s.largest, func(y wire.PartitionSize) bool { return y.Partition == x.Partition })
	if at < 0 {
		at = len(s.largest)
		s.largest = append(s.largest, x)
	}
	for ; at > 0 && before(x, s.largest[at-1]); at-- {
		s.largest[at] = s.largest[at-1]
	}
	s.largest[at] = x
	s.largest = s.largest[:min(len(s.largest), wire.MaxLargest)]
}

// before reports whether x comes before y among the largest partitions.
func before(x, y wire.PartitionSize) bool {
	return x.Bytes > y.Bytes || x.Bytes == y.Bytes && x.Partition < y.Partition
}

// Large returns the largest partition among those that in reports, if it has twice the mean size or more, or -1. It
// knows only the largest partitions of the job.
func (s *Sizes) Large(in func(partition int) bool) int {
	for _, x := range s.largest {
		if x.Bytes < largeShare*(s.bytes/int64(s.known)) || x.Bytes == 0 {
			break
		}
		if in(x.Partition) {
			return x.Partition
		}
	}
	return -1
}

// largeShare is how many mean partitions a large one has.
const largeShare = 2

// Status returns the sizes of a job's partitions: their total, and how many are gathered; nil: none is known.
func (s *Sizes) Status(total, gathered int) *wire.PartitionSizes {
	if s.known == 0 {
		return nil
	}
	x := &wire.PartitionSizes{Total: total, Known: s.known, Gathered: gathered, Bytes: s.bytes, Largest: slices.Clone(s.largest)}
	below := 0
	for i, n := range s.buckets {
		if n == 0 {
			continue
		}
		b := wire.SizeBucket{From: boundOf(i), To: boundOf(i + 1), Partitions: int(n)}
		if below <= s.known/2 && below+int(n) > s.known/2 {
			x.Median = (b.From + b.To - 1) / 2
		}
		below += int(n)
		x.Buckets = append(x.Buckets, b)
	}
	return x
}

// bucketOf returns the bucket of a size. There are four for each power of two, from 4 on.
func bucketOf(bytes int64) int {
	if bytes < 4 {
		return int(bytes)
	}
	power := bits.Len64(uint64(bytes)) - 1
	return 4*(power-1) + int(bytes>>(power-2)&3)
}

// boundOf returns the smallest size in a bucket.
func boundOf(bucket int) int64 {
	if bucket < 4 {
		return int64(bucket)
	}
	power := bucket/4 + 1
	if power > 62 {
		return 1<<63 - 1
	}
	return int64(4+bucket%4) << (power - 2)
}
