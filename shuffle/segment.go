package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
)

const (
	// blockTarget is the maximum payload of a block with more than one record, in bytes.
	blockTarget = 64 << 10
	// blockHeader is the size of the header before a block's payload.
	blockHeader = 12
	// packedBlock in a block's length marks a block packed by a [Codec].
	packedBlock = 1 << 31
	// flushSize is the smallest size of a write to the file, in bytes.
	flushSize = 256 << 10
)

// segmentWriter writes a segment file, partition after partition.
type segmentWriter struct {
	to         io.Writer
	file       *os.File // to, if abort must close and remove it
	buf        []byte   // not yet written; ends with the open block, if any
	open       int      // offset of the open block in buf, -1: none
	written    int64    // bytes before buf in the file
	index      Index
	current    Partition
	onProgress func() // called with every write; may be nil
	codec      *namedCodec
	chooser    *chooser // chooses codec; nil: it stays
	packed     []byte   // buffer for a packed block
	temporary  bool     // nothing compares the file with others: its partitions have no digests
}

// createSegment begins a segment file. It replaces a file of an earlier process. A worker creates its files by
// os.Create, a task tracker by [CreateFile].
func createSegment(name string, create func(string) (*os.File, error)) (*segmentWriter, error) {
	f, err := create(name)
	if err != nil {
		return nil, fmt.Errorf("write segment: %w", err)
	}
	w := newSegment(f)
	w.file = f
	return w, nil
}

// newSegment begins a segment file in a writer that the caller closes.
func newSegment(to io.Writer) *segmentWriter {
	w := &segmentWriter{to: to, open: -1, buf: append(make([]byte, 0, flushSize+2*blockTarget), magic...)}
	w.current.Offset = int64(len(magic))
	return w
}

// add appends a record.
func (w *segmentWriter) add(key, value []byte) error {
	size := recordSize(len(key), len(value))
	if size > blockTarget {
		lengths := binary.AppendUvarint(make([]byte, 0, maxLengths), uint64(len(key)))
		return w.addLarge(binary.AppendUvarint(lengths, uint64(len(value))), key, value)
	}
	if err := w.ensureRoom(size); err != nil {
		return err
	}
	start := len(w.buf)
	w.buf = w.buf[:start+size]
	putRecord(w.buf[start:], key, value)
	w.count(w.buf[start:], 1)
	return nil
}

// addEncoded appends an encoded record.
func (w *segmentWriter) addEncoded(record []byte) error { return w.addRepeated(record, 1) }

// addRepeated appends an encoded record n times.
func (w *segmentWriter) addRepeated(record []byte, n int) error {
	if len(record) > blockTarget {
		for range n {
			if err := w.addLarge(record); err != nil {
				return err
			}
		}
		return nil
	}
	w.count(record, n)
	for n > 0 {
		if err := w.ensureRoom(len(record)); err != nil {
			return err
		}
		now := min(n, (w.open+blockHeader+blockTarget-len(w.buf))/len(record))
		w.buf = appendRepeated(w.buf, record, now)
		n -= now
	}
	return nil
}

// addLarge appends a block of one record from its parts. It does not copy them: a worker
// has memory for few copies of its largest record.
func (w *segmentWriter) addLarge(parts ...[]byte) error {
	if err := w.closeBlock(); err != nil {
		return err
	}
	var header [blockHeader]byte
	size, sum, digest := 0, uint32(0), xxhash.New()
	for _, p := range parts {
		size += len(p)
		sum = crc32.Update(sum, castagnoli, p)
		digest.Write(p)
	}
	putBlockHeader(header[:], uint32(size), sum)
	w.buf = append(w.buf, header[:]...)
	if err := w.flush(); err != nil {
		return err
	}
	for _, p := range parts {
		if err := w.write(p); err != nil {
			return err
		}
	}
	w.current.Length += int64(blockHeader + size)
	w.current.Records++
	w.current.Digest += digest.Sum64()
	return nil
}

// addBlock appends a verified block of another segment file unchanged.
func (w *segmentWriter) addBlock(payload []byte) error {
	if len(payload) > blockTarget {
		if _, _, end, ok := lengths(payload); !ok || end != len(payload) {
			return errBadRecord
		}
		return w.addLarge(payload)
	}
	if err := w.closeBlock(); err != nil {
		return err
	}
	w.openBlock()
	w.buf = append(w.buf, payload...)
	for len(payload) > 0 {
		_, _, end, ok := lengths(payload)
		if !ok || end > len(payload) {
			return errBadRecord
		}
		w.count(payload[:end], 1)
		payload = payload[end:]
	}
	return w.closeBlock()
}

var errBadRecord = errors.New("a block's records do not fill it")

// count counts a record n times.
func (w *segmentWriter) count(record []byte, n int) {
	w.current.Records += int64(n)
	if !w.temporary {
		w.current.Digest += uint64(n) * xxhash.Sum64(record)
	}
}

// ensureRoom ensures an open block with room for a record of size bytes.
func (w *segmentWriter) ensureRoom(size int) error {
	if w.fits(size) {
		return nil
	}
	if err := w.closeBlock(); err != nil {
		return err
	}
	w.openBlock()
	return nil
}

// fits reports whether a record of size bytes fits into the open block.
func (w *segmentWriter) fits(size int) bool {
	return w.open >= 0 && len(w.buf)+size <= w.open+blockHeader+blockTarget
}

func (w *segmentWriter) openBlock() {
	w.open = len(w.buf)
	w.buf = append(w.buf, make([]byte, blockHeader)...)
}

// closeBlock ends the open block, if any.
func (w *segmentWriter) closeBlock() error {
	if w.open < 0 {
		return nil
	}
	packed := w.pack()
	block := w.buf[w.open:]
	w.open = -1
	payload := block[blockHeader:]
	length := uint32(len(payload))
	if packed {
		length |= packedBlock
	}
	putBlockHeader(block, length, checksum(payload))
	w.current.Length += int64(len(block))
	if len(w.buf) < flushSize {
		return nil
	}
	return w.flush()
}

func putBlockHeader(dst []byte, length, sum uint32) {
	binary.BigEndian.PutUint32(dst, length)
	binary.BigEndian.PutUint32(dst[4:], sum)
	binary.BigEndian.PutUint32(dst[8:], checksum(dst[:8]))
}

func (w *segmentWriter) flush() error {
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *segmentWriter) write(p []byte) error {
	n, err := w.to.Write(p)
	w.written += int64(n)
	if err != nil {
		return fmt.Errorf("write segment: %w", err)
	}
	if w.onProgress != nil {
		w.onProgress()
	}
	return nil
}

// endPartition ends the current partition and begins the next.
func (w *segmentWriter) endPartition() error {
	if err := w.closeBlock(); err != nil {
		return err
	}
	w.index.Partitions = append(w.index.Partitions, w.current)
	w.current = Partition{Offset: w.current.Offset + w.current.Length}
	return nil
}

// finish writes the remaining bytes and the index.
func (w *segmentWriter) finish() error {
	w.buf = appendIndex(w.buf, &w.index)
	return w.flush()
}

// close finishes and closes the file. After an error, or without close, call abort.
func (w *segmentWriter) close() error {
	if err := w.finish(); err != nil {
		return err
	}
	f := w.file
	w.file = nil
	if err := f.Close(); err != nil {
		return errors.Join(fmt.Errorf("write segment: %w", err), removeFile(f.Name()))
	}
	return nil
}

// abort closes and removes the file, unless close succeeded.
func (w *segmentWriter) abort() {
	if w.file != nil {
		w.file.Close()
		_ = removeFile(w.file.Name())
		w.file = nil
	}
}
