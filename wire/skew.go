package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// HotKey is a key with a large part of the records of its partition.
type HotKey struct {
	Partition int    `msgpack:"Partition"`
	Key       string `msgpack:"Key"`                // as text without control characters, at most MaxHotKey bytes and "…"
	Raw       bool   `msgpack:"Raw,omitempty"`      // Key shows the bytes of the encoding, since the type is not known there
	Combined  bool   `msgpack:"Combined,omitempty"` // the maps combine: Records and Bytes are about combined records
	Records   int64  `msgpack:"Records"`            // read so far
	Bytes     int64  `msgpack:"Bytes"`              // of these records
	Of        int64  `msgpack:"Of"`                 // bytes of the partition, or of its part that was merged so far
}

// Hot has the hot groups among the records of a partition that an attempt or a home has read so far. A group is
// the records that a reduce gets together, or those with equal keys. A hot one has at least MinHotBytes, and 1 part
// of HotShare of Of. No groups means that none is hot any more.
type Hot struct {
	Read   int64      `msgpack:"Read"`   // bytes of all records so far
	Of     int64      `msgpack:"Of"`     // bytes of the partition, if they are known, else Read
	Groups []HotGroup `msgpack:"Groups"` // most bytes first; at most MaxHotGroups
}

// HotGroup is a group of a [Hot].
type HotGroup struct {
	Key     string `msgpack:"Key"`           // any bytes, at most MaxHotKey and "…"
	Raw     bool   `msgpack:"Raw,omitempty"` // as in HotKey
	Records int64  `msgpack:"Records"`
	Bytes   int64  `msgpack:"Bytes"`
}

// IsHot reports whether a group with some of the bytes of a partition is hot.
func IsHot(bytes, of int64) bool { return bytes >= MinHotBytes && bytes >= of/HotShare }

// Bound cuts h to as many groups and bytes as are allowed, and returns it.
func (h *Hot) Bound() *Hot {
	if h == nil {
		return nil
	}
	h.Groups = h.Groups[:min(len(h.Groups), MaxHotGroups)]
	for i := range h.Groups {
		h.Groups[i].Key = Truncate(h.Groups[i].Key, MaxHotKey)
	}
	return h
}

// After returns the hot groups to report after a report: h if its groups differ, else the same report again. A
// first report has groups.
func (h *Hot) After(last *Hot) *Hot {
	if last == nil && len(h.Groups) == 0 || last != nil && slices.Equal(h.Groups, last.Groups) {
		return last
	}
	return h
}

// PrintableKey returns the text of a key for displays: control characters, bytes that are not UTF-8 and other
// characters that do not print are escaped, and a long text is cut.
func PrintableKey(key string) string {
	var b strings.Builder
	for len(key) > 0 && b.Len() < MaxHotKey {
		r, n := utf8.DecodeRuneInString(key)
		switch {
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, key[0])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(key[:n])
		}
		key = key[n:]
	}
	if text := b.String(); key == "" || len(text) > MaxHotKey {
		return Truncate(text, MaxHotKey)
	}
	return b.String() + "…"
}

// Limits of [PartitionSizes], [HotKey] and [Hot].
const (
	MaxSizeBuckets = 248
	MaxLargest     = 10
	MaxHotKeys     = 16 // of a job
	MaxHotKey      = 64
	MaxHotGroups   = 8 // of a partition
	MinHotBytes    = 64 << 10
	HotShare       = 100 // 1 part of 100
)
