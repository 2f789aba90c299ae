package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
)

// The form of a segment file, of raft-wal. All numbers are little-endian; frames
// begin at multiples of 8 and are padded with zeros. A write is a batch: entries, in a
// full segment the index of all of them, and a commit with the crc32c of the batch.
// The first batch begins with the header. The rest of the file is zero.
//
//	header  +-----------+-----+------+----------+--------+-----------+
//	        | magic u32 | 0 0 0 | v 0 | base u64 | id u64 | codec u64 |
//	        +-----------+-----+------+----------+--------+-----------+
//	entry   | 1 | 0 0 0 | length u32 | entry …                        |
//	index   | 2 | 0 0 0 | length u32 | u32 offset of each entry …     |
//	commit  | 3 | 0 0 0 | crc32c u32 |
const (
	segmentMagic  = 0x58eb6b0d
	segmentHeader = 32
	frameHeader   = 8
	sector        = 512 // what a disk writes whole or not at all
)

const (
	frameEntry  = 1
	frameIndex  = 2
	frameCommit = 3
	frameEnd    = -1 // zeros, or the end of the file
	frameBad    = -2
)

// frameAt reads the header of a frame and says where the next one begins.
func frameAt(data []byte, at int) (kind int, next int) {
	if at+frameHeader > len(data) {
		return frameEnd, at
	}
	word := binary.LittleEndian.Uint64(data[at:])
	if word == 0 {
		return frameEnd, at
	}
	kind, n := int(uint32(word)), int(word>>32)
	switch kind {
	case frameCommit:
		return kind, at + frameHeader
	case frameEntry, frameIndex:
		next = at + frameHeader + (n+frameHeader-1)/frameHeader*frameHeader
		if next <= len(data) {
			return kind, next
		}
	}
	return frameBad, at
}

// payload is what an entry's frame holds.
func payload(data []byte, at int) []byte {
	n := int(binary.LittleEndian.Uint32(data[at+4:]))
	return data[at+frameHeader : at+frameHeader+n]
}

// batch is one write: where its frames are, and whether it is whole.
type batch struct {
	entries []int
	index   int // 0: none
	end     int // or, when it is not whole, where that was noticed
	whole   bool
}

// batchAt reads a batch whose bytes count from start and whose frames begin at at.
func batchAt(data []byte, start, at int) batch {
	var b batch
	for {
		kind, next := frameAt(data, at)
		switch kind {
		case frameEntry:
			b.entries = append(b.entries, at)
		case frameIndex:
			b.index = at
		case frameCommit:
			b.end = next
			b.whole = crc32.Checksum(data[start:at], crcTable) == binary.LittleEndian.Uint32(data[at+4:])
			return b
		case frameEnd, frameBad:
			b.end = at
			return b
		}
		at = next
	}
}

// scan is what a segment holds.
type scan struct {
	entries  []int // offsets of the frames
	index    int   // offset of the index that makes the segment a full one; 0: it is none
	end      int   // of the last whole batch
	leftover int   // where the bytes after it end that a torn write left; end: none
}

// scanSegment reads a segment. It fails when a batch is damaged that was whole once.
// What a crash leaves of a last batch is told from damage by what is after it, by its
// missing end, or by a sector that was never written.
func scanSegment(name string, data []byte, info types.SegmentInfo) (scan, error) {
	var s scan
	start, at := 0, segmentHeader
	written := lastWord(data, 0)
	for {
		if start >= written {
			s.leftover = s.end
			return s, nil
		}
		b := batchAt(data, start, min(at, len(data)))
		if start == 0 && !headerFits(data, info) {
			b = batch{}
		}
		if !b.whole {
			if damaged(data, start, b.end) {
				return s, &damage{name, firstBad(data, b), "what is there was changed"}
			}
			s.leftover = written
			return s, nil
		}
		for _, e := range b.entries {
			if err := checkEntry(payload(data, e), info.BaseIndex+uint64(len(s.entries))); err != nil {
				return s, &damage{name, e, err.Error()}
			}
			s.entries = append(s.entries, e)
		}
		s.index, s.end = b.index, b.end
		start, at = s.end, s.end
	}
}

func headerFits(data []byte, info types.SegmentInfo) bool {
	return len(data) >= segmentHeader &&
		binary.LittleEndian.Uint64(data) == segmentMagic &&
		binary.LittleEndian.Uint64(data[8:]) == info.BaseIndex &&
		binary.LittleEndian.Uint64(data[16:]) == info.ID &&
		binary.LittleEndian.Uint64(data[24:]) == codecID
}

func checkEntry(data []byte, index uint64) error {
	var l raft.Log
	if err := (checkedCodec{}).Decode(data, &l); err != nil {
		return err
	}
	if l.Index != index {
		return fmt.Errorf("it is entry %d, not %d", l.Index, index)
	}
	return nil
}

// lastWord is the end of the last 8 bytes from start on that are not all zero.
func lastWord(data []byte, start int) int {
	for end := len(data); end > start; end-- {
		if data[end-1] != 0 {
			return min(start+(end-start+frameHeader-1)/frameHeader*frameHeader, len(data))
		}
	}
	return start
}

// maxTries bounds the work on what looks like commits and is not. No torn write has
// so many.
const maxTries = 1000

// damaged judges a batch from start that is not whole, as was noticed at bad.
func damaged(data []byte, start, bad int) bool {
	if bad+frameHeader <= len(data) && bad > start &&
		crc32.Checksum(data[start:bad], crcTable) == binary.LittleEndian.Uint32(data[bad+4:]) {
		return true // all of it is there, but what says that it is a commit
	}
	end := lastWord(data, start)
	last, tries := false, 0
	for at := start; at+frameHeader <= end; at += frameHeader {
		last = binary.LittleEndian.Uint32(data[at:]) == frameCommit
		if !last {
			continue
		}
		next := at + frameHeader
		if tries++; tries > maxTries || batchAt(data, next, next).whole {
			return true // so what is before it was acknowledged
		}
	}
	return last && !zeroSector(data, start, end)
}

// zeroSector says whether some sector between start and end holds zeros only.
func zeroSector(data []byte, start, end int) bool {
	for at := start; at < end; {
		next := min((at/sector+1)*sector, end)
		if allZero(data[at:next]) {
			return true
		}
		at = next
	}
	return false
}

func allZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// firstBad is where a damaged batch is first seen to be not as it was written.
func firstBad(data []byte, b batch) int {
	for _, e := range b.entries {
		if _, err := checkedBody(payload(data, e)); err != nil {
			return e
		}
	}
	return b.end
}

// damage is a file that is not as it was written.
type damage struct {
	file   string
	offset int
	what   string
}

func (d *damage) Error() string {
	return fmt.Sprintf("%v: %s at offset %d: %s", ErrDamaged, d.file, d.offset, d.what)
}

func (d *damage) Is(target error) bool { return target == ErrDamaged }
