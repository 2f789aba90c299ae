package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
)

// The format of raft-wal's segment files. Numbers are little-endian. Frames begin at multiples of 8
// and are padded with zeros. Each write is a batch of frames: entries, then a commit with the
// crc32c of the batch. If the segment is full, an index of all entries comes before the commit. The
// first batch begins with the header. The rest of the file is zero.
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
	sector        = 512 // bytes that a disk writes atomically
)

const (
	frameEntry  = 1
	frameIndex  = 2
	frameCommit = 3
	frameEnd    = -1 // zeros, or the end of the file
	frameBad    = -2
)

// frameAt returns the kind of a frame and the offset of the next one.
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

// payload returns the content of an entry's frame.
func payload(data []byte, at int) []byte {
	n := int(binary.LittleEndian.Uint32(data[at+4:]))
	return data[at+frameHeader : at+frameHeader+n]
}

// batch is one write: the offsets of its frames, and whether it is complete.
type batch struct {
	entries  []int
	index    int // 0: none
	end      int // if incomplete: where reading stopped
	complete bool
}

// batchAt reads a batch. Its checksum counts the bytes from start; its frames begin at offset at.
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
			b.complete = crc32.Checksum(data[start:at], crcTable) == binary.LittleEndian.Uint32(data[at+4:])
			return b
		case frameEnd, frameBad:
			b.end = at
			return b
		}
		at = next
	}
}

// scan is the content of a segment.
type scan struct {
	entries  []int // offsets of the frames
	index    int   // offset of the index of a full segment; 0: not full
	end      int   // end of the last complete batch
	leftover int   // end of a torn write after it; equal to end: there is none
}

// scanSegment reads a segment. It fails if a batch was complete once and is damaged now. It
// recognizes a torn last write: no batch follows, and its end or a sector is unwritten.
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
		if !b.complete {
			if damaged(data, start, b.end) {
				return s, &damage{name, firstBad(data, b), "its content has changed"}
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

// lastWord returns the end of the last 8-byte word after start that is not zero.
func lastWord(data []byte, start int) int {
	for end := len(data); end > start; end-- {
		if data[end-1] != 0 {
			return min(start+(end-start+frameHeader-1)/frameHeader*frameHeader, len(data))
		}
	}
	return start
}

// maxCommitChecks limits the checks of bytes that look like commit frames. A torn write has fewer.
const maxCommitChecks = 1000

// damaged reports whether an incomplete batch was complete once, and was not torn by a crash. bad
// is the offset at which reading stopped.
func damaged(data []byte, start, bad int) bool {
	if bad+frameHeader <= len(data) && bad > start &&
		crc32.Checksum(data[start:bad], crcTable) == binary.LittleEndian.Uint32(data[bad+4:]) {
		return true // complete, except for the kind of the commit frame
	}
	end := lastWord(data, start)
	last, checks := false, 0
	for at := start; at+frameHeader <= end; at += frameHeader {
		last = binary.LittleEndian.Uint32(data[at:]) == frameCommit
		if !last {
			continue
		}
		next := at + frameHeader
		if checks++; checks > maxCommitChecks || batchAt(data, next, next).complete {
			return true // a later batch is complete, so this one was acknowledged
		}
	}
	return last && !zeroSector(data, start, end)
}

// zeroSector reports whether a sector between start and end has only zeros.
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

// firstBad returns the offset of the first damage of a batch.
func firstBad(data []byte, b batch) int {
	for _, e := range b.entries {
		if _, err := checkedBody(payload(data, e)); err != nil {
			return e
		}
	}
	return b.end
}

// damage is the error of a damaged file.
type damage struct {
	file    string
	offset  int
	problem string
}

func (d *damage) Error() string {
	return fmt.Sprintf("%v: %s at offset %d: %s", ErrDamaged, d.file, d.offset, d.problem)
}

func (d *damage) Is(target error) bool { return target == ErrDamaged }
