package wire

// PartitionSizes says how a job's map output is spread over its partitions. The size of a partition is the
// most bytes that a home has gathered of it so far.
type PartitionSizes struct {
	Total    int   `msgpack:"Total"`    // number of partitions
	Known    int   `msgpack:"Known"`    // number of partitions with a known size
	Gathered int   `msgpack:"Gathered"` // number of partitions that are completely gathered, or need not be
	Bytes    int64 `msgpack:"Bytes"`    // of all partitions
	Median   int64 `msgpack:"Median"`   // of the known sizes, within an eighth

	Buckets []SizeBucket    `msgpack:"Buckets"` // those with partitions, smallest first; at most MaxSizeBuckets
	Largest []PartitionSize `msgpack:"Largest"` // largest first, then by number; at most MaxLargest
}

// SizeBucket counts the partitions with sizes in a range.
type SizeBucket struct {
	From       int64 `msgpack:"From"`
	To         int64 `msgpack:"To"` // exclusive
	Partitions int   `msgpack:"Partitions"`
}

// PartitionSize is the size of one partition.
type PartitionSize struct {
	Partition int   `msgpack:"Partition"`
	Bytes     int64 `msgpack:"Bytes"`
}

// HotKey is a key with a large part of the records of its partition. If the job's maps combine, these are
// combined records.
type HotKey struct {
	Partition int    `msgpack:"Partition"`
	Key       string `msgpack:"Key"`           // as text without control characters, at most MaxHotKey bytes and "…"
	Raw       bool   `msgpack:"Raw,omitempty"` // Key shows the bytes of the encoding, since the type is not known there
	Records   int64  `msgpack:"Records"`       // read so far
	Bytes     int64  `msgpack:"Bytes"`         // of these records
	Of        int64  `msgpack:"Of"`            // bytes of all records of the partition that were read so far
}

// Limits of [PartitionSizes] and [HotKey].
const (
	MaxSizeBuckets = 248
	MaxLargest     = 10
	MaxHotKeys     = 16 // of a job
	MaxHotKey      = 64
)
