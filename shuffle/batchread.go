package shuffle

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/wire"
)

// sectionSum is the checksum of a section, without its blocks.
func sectionSum(header *[sectionHeader]byte, body []byte) uint32 {
	return crc32.Update(checksum(header[:5]), castagnoli, body)
}

// batchReader decodes an answer and verifies it.
type batchReader struct {
	from     io.Reader
	batch    *Batch
	where    string // of the outputs, for errors
	progress func() // called after each section; or nil
	pieces   [][]batchPiece
	failed   []BatchFailure
	large    []BatchPair
	ended    int // outputs that were answered
	held     int64
	header   [sectionHeader]byte
	body     []byte
	entries  []batchEntry
	chunks   []*[chunkBytes]byte
	chunk    []byte // the rest of the last one
	scratch  []byte // an unpacked block
}

// batchEntry is an entry of a table.
type batchEntry struct {
	at      int // in Batch.Partitions
	length  int64
	follows bool
	want    batchSum
}

// batchSum is what an index says of a partition.
type batchSum struct {
	records int64
	digest  uint64
}

// batchPiece is the verified blocks of a partition of one map output.
type batchPiece struct {
	output int32 // in Batch.Outputs
	digest uint64
	bytes  int64 // of the records
	blocks []byte
}

// read reads the whole answer. After an error, the outputs that were answered are valid.
func (r *batchReader) read() error {
	r.pieces = make([][]batchPiece, len(r.batch.Partitions))
	for i := range r.batch.Outputs {
		full, err := r.section(i)
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			r.forget(i)
			return &UnreadableError{Segment: r.segment(i), Err: err}
		}
		if full {
			break
		}
		r.ended++
		if r.progress != nil {
			r.progress()
		}
	}
	return nil
}

// forget drops what was read of an output.
func (r *batchReader) forget(output int) {
	for p, list := range r.pieces {
		if n := len(list); n > 0 && list[n-1].output == int32(output) {
			r.pieces[p] = list[:n-1]
		}
	}
	r.failed = slices.DeleteFunc(r.failed, func(f BatchFailure) bool { return f.Output == output })
	r.large = slices.DeleteFunc(r.large, func(p BatchPair) bool { return p.Output == output })
}

// segment names an output in errors.
func (r *batchReader) segment(output int) wire.Segment {
	o := r.batch.Outputs[output]
	return wire.Segment{Map: o.Map, Attempt: o.Attempt, URL: r.where}
}

// section reads the section of an output.
func (r *batchReader) section(output int) (full bool, err error) {
	state, err := r.state()
	if err != nil {
		return false, err
	}
	if err := r.readBody(state); err != nil {
		return false, err
	}
	switch state {
	case batchFull:
		return true, nil
	case batchTable:
		if err := r.parseTable(); err != nil {
			return false, err
		}
		return false, r.blocks(output)
	}
	r.fail(output, state)
	return false, nil
}

// state reads the first byte of a section, or the byte before the blocks of a partition.
func (r *batchReader) state() (byte, error) {
	_, err := io.ReadFull(r.from, r.header[:1])
	return r.header[0], err
}

// readBody reads the rest of a section with this state.
func (r *batchReader) readBody(state byte) error {
	if _, err := io.ReadFull(r.from, r.header[1:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(r.header[1:])
	if state >= batchStates || length > maxBatchBody {
		return fmt.Errorf("the header %x of a section is damaged", r.header)
	}
	r.body = slices.Grow(r.body[:0], int(length))[:length]
	if _, err := io.ReadFull(r.from, r.body); err != nil {
		return err
	}
	if got, want := sectionSum(&r.header, r.body), binary.BigEndian.Uint32(r.header[5:]); got != want {
		return fmt.Errorf("a section has checksum %08x, should have %08x", got, want)
	}
	return nil
}

// fail records an error section for an output.
func (r *batchReader) fail(output int, state byte) {
	r.failed = append(r.failed, BatchFailure{BatchPair{output, -1}, r.refusal(output, state)})
}

// withdraw reads the section that comes instead of the rest of an output.
func (r *batchReader) withdraw(output int, state byte) error {
	if err := r.readBody(state); err != nil {
		return err
	}
	if state == batchFull {
		return errors.New("an answer is full within an output")
	}
	r.forget(output)
	r.fail(output, state)
	return nil
}

// refusal returns the error that stands for an output.
func (r *batchReader) refusal(output int, state byte) error {
	s, text := r.segment(output), "the server says: "+string(r.body)
	switch state {
	case batchMissing:
		return &UnreadableError{Segment: s, Err: &missingError{text}}
	case batchCorrupt:
		return &CorruptError{Segment: s, Reason: text}
	}
	return &UnreadableError{Segment: s, Err: errors.New(text)}
}

// missingError matches fs.ErrNotExist.
type missingError struct{ text string }

func (e *missingError) Error() string        { return e.text }
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// parseTable decodes the entries of a table.
func (r *batchReader) parseTable() error {
	r.entries = r.entries[:0]
	at, following := 0, int64(0)
	for b := r.body; len(b) > 0; {
		p, n := binary.Uvarint(b)
		length, m := binary.Uvarint(b[max(n, 0):])
		records, k := binary.Uvarint(b[max(n, 0)+max(m, 0):])
		size := n + m + k
		if n <= 0 || m <= 0 || k <= 0 || len(b) < size+8 {
			return errors.New("a table is damaged")
		}
		for at < len(r.batch.Partitions) && uint64(r.batch.Partitions[at]) < p {
			at++
		}
		e := batchEntry{at: at, length: int64(length >> 1), follows: length&1 != 0, want: batchSum{int64(records), binary.BigEndian.Uint64(b[size:])}}
		if at == len(r.batch.Partitions) || uint64(r.batch.Partitions[at]) != p || e.length == 0 || records > uint64(maxRecords(e.length)) {
			return fmt.Errorf("partition %d with %d bytes and %d records was not requested, or is impossible", p, e.length, records)
		}
		switch fits := e.length <= maxBatchPartition && following+e.length <= BatchBytes; {
		case e.follows != fits:
			return fmt.Errorf("a partition of %d bytes after %d others follows: %v, but the limits are %d and %d", e.length, following, e.follows, maxBatchPartition, BatchBytes)
		case fits:
			following += e.length
			if r.held += e.length; r.held > BatchBytes {
				return fmt.Errorf("partitions of %d bytes together exceed the limit %d", r.held, BatchBytes)
			}
		}
		r.entries = append(r.entries, e)
		b = b[size+8:]
		at++
	}
	return nil
}

// chunkBytes is the memory that is allocated at once for the pieces of an answer. No piece is larger.
const chunkBytes = maxBatchPartition

// chunks keeps the memory of the last answers.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// release gives the memory of all pieces back.
func (r *batchReader) release() {
	for _, c := range r.chunks {
		chunks.Put(c)
	}
	r.chunks, r.chunk, r.pieces = nil, nil, nil
}

// blocks reads the blocks of all entries.
func (r *batchReader) blocks(output int) error {
	for _, e := range r.entries {
		if !e.follows {
			r.large = append(r.large, BatchPair{output, r.batch.Partitions[e.at]})
			continue
		}
		if int64(len(r.chunk)) < e.length {
			r.chunks = append(r.chunks, chunks.Get().(*[chunkBytes]byte))
			r.chunk = r.chunks[len(r.chunks)-1][:]
		}
		if state, err := r.state(); err != nil {
			return err
		} else if state != batchTable {
			return r.withdraw(output, state)
		}
		blocks := r.chunk[:e.length:e.length]
		if _, err := io.ReadFull(r.from, blocks); err != nil {
			return err
		}
		got, bytes, err := r.sum(blocks)
		if err == nil && got != e.want {
			err = damaged(0, "%d records have digest %016x, index says %d and %016x", got.records, got.digest, e.want.records, e.want.digest)
		}
		if damage, ok := errors.AsType[*damageError](err); ok {
			r.failed = append(r.failed, BatchFailure{BatchPair{output, r.batch.Partitions[e.at]}, damage.in(r.segment(output))})
			continue
		}
		r.chunk = r.chunk[e.length:]
		r.pieces[e.at] = append(r.pieces[e.at], batchPiece{int32(output), got.digest, bytes, blocks})
	}
	return nil
}

// sum verifies the blocks of a partition, and counts their records and the bytes of these.
func (r *batchReader) sum(blocks []byte) (sum batchSum, bytes int64, err error) {
	in := memoryBlocks{rest: blocks, unpacked: r.scratch, verify: true}
	for {
		payload, _, err := in.next()
		if err == io.EOF {
			r.scratch = in.unpacked
			return sum, bytes, nil
		}
		if err != nil {
			return sum, 0, err
		}
		bytes += int64(len(payload))
		for len(payload) > 0 {
			_, _, end, ok := lengths(payload)
			if !ok || end > len(payload) {
				return sum, 0, damaged(0, "%v", errBadRecord)
			}
			sum.records++
			sum.digest += xxhash.Sum64(payload[:end])
			payload = payload[end:]
		}
	}
}

// memoryBlocks is a source of the blocks of a segment in memory.
type memoryBlocks struct {
	rest     []byte
	unpacked []byte
	verify   bool // the blocks are not verified yet
}

func (m *memoryBlocks) next() ([]byte, bool, error) {
	if len(m.rest) == 0 {
		return nil, false, io.EOF
	}
	if len(m.rest) <= blockHeader {
		return nil, false, damaged(0, "%d bytes are too few for a block", len(m.rest))
	}
	head := binary.BigEndian.Uint32(m.rest)
	length, packed := int(head&^packedBlock), head&packedBlock != 0
	if m.verify {
		_, _, _, ok := parseBlockHeader((*[blockHeader]byte)(m.rest))
		if !ok || length == 0 || length > len(m.rest)-blockHeader || packed && length > blockTarget {
			return nil, false, damaged(0, "block header %x is damaged", m.rest[:blockHeader])
		}
	}
	payload, sum := m.rest[blockHeader:blockHeader+length], binary.BigEndian.Uint32(m.rest[4:])
	m.rest = m.rest[blockHeader+length:]
	if m.verify {
		if err := verify(payload, sum, 0); err != nil {
			return nil, false, err
		}
	}
	if packed {
		var err error
		if m.unpacked, err = unpack(m.unpacked, payload, 0); err != nil {
			return nil, false, err
		}
		payload = m.unpacked
	}
	return payload, true, nil
}

func (m *memoryBlocks) load([]byte) ([]byte, error) { panic("shuffle: blocks in memory are whole") }

func (m *memoryBlocks) part([]byte, int, int) ([]byte, error) {
	panic("shuffle: blocks in memory are whole")
}

// fetchStream requests a batch. The caller closes the input.
func fetchStream(ctx context.Context, url string, o FetchOptions) (*remoteInput, io.Reader, error) {
	in := newRemoteInput(ctx, wire.Segment{Map: -1, URL: url}, o)
	in.stream = true
	if err := in.open(0); err != nil {
		return nil, nil, err
	}
	return in, bufio.NewReaderSize(in, 64<<10), nil
}

// progress gives the server of a stream the whole time again for the next part.
func (r *remoteInput) progress() { r.stallLeft, r.stallRead = r.stall, 0 }

// Read reads the next bytes of a stream.
func (r *remoteInput) Read(p []byte) (int, error) {
	n, err := r.read(p)
	if err == nil {
		err = r.wait(n)
	}
	return n, err
}
