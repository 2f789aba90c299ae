package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// The splits file, numbers little-endian, varint as in encoding/binary:
//
//	+--------------------+-----------------+------------------------------+---------+----------+
//	| "QSPLITS2" 8 bytes | count n, u32    | n+1 offsets in the file, u64 | entries | hash u64 |
//	+--------------------+-----------------+------------------------------+---------+----------+
//
// Entry i is between offsets i and i+1. The last offset points to the hash, which is
// xxhash64 of all bytes before it. An entry:
//
//	+------------------------+-------------------------------+
//	| CRC32C u32 of the rest | length of all chunks, uvarint |
//	+------------------------+-------------------------------+
//	| nodes: count uvarint, each a host, rack and address,   |
//	| as length uvarint and bytes; preferred: count uvarint  |
//	+--------------------------------------------------------+
//	| input uvarint                                          |
//	+--------------------------------------------------------+
//	| chunks: count uvarint, each a path (length uvarint and |
//	| bytes), then offset, length, size, modified: uvarints  |
//	+--------------------------------------------------------+
//
// So a map reads two offsets and its own entry, and the job tracker reads the beginning of
// each entry. A file that begins with "QSPLITS1" is older and has hosts instead of nodes:
// count uvarint, each a length uvarint and bytes.
const (
	splitsMagic    = "QSPLITS2"
	oldSplitsMagic = "QSPLITS1"
	splitsHead     = len(splitsMagic) + 4
	maxSplitsFile  = 256 << 20
	maxEntry       = 64 << 20
	maxHosts       = 1 << 10 // hosts or nodes of a split
)

// SplitInfo is the data about a split for scheduling.
type SplitInfo struct {
	Length int64    // bytes of input
	Hosts  []string // preferred nodes
	Racks  []string // of these nodes; an element is empty if it is not known
}

func castagnoli(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) // the library makes the table once
}

func encodeSplits(splits []splitEntry) ([]byte, uint64) {
	data := make([]byte, splitsHead+8*(len(splits)+1))
	copy(data, splitsMagic)
	binary.LittleEndian.PutUint32(data[len(splitsMagic):], uint32(len(splits)))
	for i := range splits {
		binary.LittleEndian.PutUint64(data[splitsHead+8*i:], uint64(len(data)))
		data = appendEntry(data, &splits[i])
	}
	binary.LittleEndian.PutUint64(data[splitsHead+8*len(splits):], uint64(len(data)))
	hash := xxhash.Sum64(data)
	return binary.LittleEndian.AppendUint64(data, hash), hash
}

func appendEntry(dst []byte, e *splitEntry) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(e.length()))
	dst = binary.AppendUvarint(dst, uint64(len(e.Nodes)))
	for _, n := range e.Nodes {
		dst = appendText(appendText(appendText(dst, n.Host), n.Rack), n.Addr)
	}
	dst = binary.AppendUvarint(dst, uint64(e.Preferred))
	dst = binary.AppendUvarint(dst, uint64(e.Input))
	dst = binary.AppendUvarint(dst, uint64(len(e.Chunks)))
	for _, c := range e.Chunks {
		dst = appendText(dst, c.Path)
		dst = binary.AppendUvarint(dst, uint64(c.Offset))
		dst = binary.AppendUvarint(dst, uint64(c.Length))
		dst = binary.AppendUvarint(dst, uint64(c.Size))
		dst = binary.AppendUvarint(dst, uint64(c.Modified))
	}
	binary.LittleEndian.PutUint32(dst[start:], castagnoli(dst[start+4:]))
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// entryReader decodes an entry. After a bad field all others are zero.
type entryReader struct {
	rest    []byte
	old     bool // of an old file, with hosts only
	invalid bool
}

func (r *entryReader) number(maximum uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > maximum {
		r.invalid, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *entryReader) text() string {
	n := r.number(maxEntry)
	if n > uint64(len(r.rest)) {
		r.invalid, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

const maxFileOffset = 1<<62 - 1

// head reads the part that the job tracker needs: the length and the nodes.
func (r *entryReader) head() (length int64, e splitEntry) {
	length = int64(r.number(maxFileOffset))
	for range r.number(maxHosts) {
		n := node{Host: r.text()}
		if !r.old {
			n.Rack, n.Addr = r.text(), r.text()
		}
		if r.invalid {
			break
		}
		e.Nodes = append(e.Nodes, n)
	}
	e.Preferred = len(e.Nodes)
	if !r.old {
		e.Preferred = int(r.number(uint64(len(e.Nodes))))
	}
	return length, e
}

func (r *entryReader) entry() splitEntry {
	length, e := r.head()
	e.Input = int(r.number(1 << 20))
	for range r.number(uint64(len(r.rest))) {
		c := Chunk{Path: r.text(), Offset: int64(r.number(maxFileOffset)),
			Length: int64(r.number(maxFileOffset)), Size: int64(r.number(maxFileOffset)),
			Modified: int64(r.number(math.MaxUint64))}
		if r.invalid {
			break
		}
		e.Chunks = append(e.Chunks, c)
	}
	if len(r.rest) > 0 || e.length() != length {
		r.invalid = true
	}
	return e
}

func openEntry(data []byte, old bool) (*entryReader, error) {
	if len(data) < 4 || binary.LittleEndian.Uint32(data) != castagnoli(data[4:]) {
		return nil, ErrCorrupt
	}
	return &entryReader{rest: data[4:], old: old}, nil
}

func decodeSplits(data []byte) ([]SplitInfo, uint64, error) {
	body := len(data) - 8
	if body < splitsHead+8 {
		return nil, 0, fmt.Errorf("%w: not a splits file", ErrCorrupt)
	}
	old, ok := splitsVersion(data)
	if !ok {
		return nil, 0, notSplits(data)
	}
	hash := binary.LittleEndian.Uint64(data[body:])
	if hash != xxhash.Sum64(data[:body]) {
		return nil, 0, fmt.Errorf("%w: wrong hash", ErrCorrupt)
	}
	n := int(binary.LittleEndian.Uint32(data[len(splitsMagic):]))
	if n > maxSplits || n > (body-splitsHead)/8-1 {
		return nil, 0, fmt.Errorf("%w: %d entries", ErrCorrupt, n)
	}
	offset := func(i int) uint64 { return binary.LittleEndian.Uint64(data[splitsHead+8*i:]) }
	if offset(0) != uint64(splitsHead+8*(n+1)) || offset(n) != uint64(body) {
		return nil, 0, fmt.Errorf("%w: index", ErrCorrupt)
	}
	infos := make([]SplitInfo, n)
	for i := range infos {
		from, to := offset(i), offset(i+1)
		if from > to || to > uint64(body) {
			return nil, 0, fmt.Errorf("%w: index of entry %d", ErrCorrupt, i)
		}
		r, err := openEntry(data[from:to], old)
		if err != nil {
			return nil, 0, fmt.Errorf("entry %d: %w", i, err)
		}
		length, e := r.head()
		if r.invalid {
			return nil, 0, fmt.Errorf("entry %d: %w", i, ErrCorrupt)
		}
		infos[i] = e.info()
		infos[i].Length = length
	}
	return infos, hash, nil
}

// notSplits reports a file of another kind, or a splits file of an unknown version.
func notSplits(data []byte) error {
	return fmt.Errorf("%w: it begins with %q, not with %q", ErrCorrupt, data[:len(splitsMagic)], splitsMagic)
}

// splitsVersion reports whether data is the beginning of a splits file (ok), and whether
// the file has the old version.
func splitsVersion(data []byte) (old, ok bool) {
	magic := string(data[:len(splitsMagic)])
	return magic == oldSplitsMagic, magic == splitsMagic || magic == oldSplitsMagic
}

func splitsName(staging string, job wire.JobID) string {
	return dfs.Join(staging, job.String(), wire.StagedSplits)
}

// ReadSplits reads the staged splits of a job, and the hash that its setup attempt reported
// in [wire.SplitsDone].
func ReadSplits(f dfs.FS, staging string, job wire.JobID) ([]SplitInfo, uint64, error) {
	name := splitsName(staging, job)
	data, err := readAll(f, name, maxSplitsFile)
	if err != nil {
		return nil, 0, fmt.Errorf("read splits: %w", err)
	}
	infos, hash, err := decodeSplits(data)
	if err != nil {
		return nil, 0, fmt.Errorf("read splits %s: %w", name, err)
	}
	return infos, hash, nil
}

func readEntry(f dfs.FS, name string, i int) (splitEntry, error) {
	e, err := readEntryAt(f, name, i)
	if err != nil {
		return splitEntry{}, fmt.Errorf("read split %d of %s: %w", i, name, err)
	}
	return e, nil
}

// countSplits returns the number of a job's splits, which is its number of maps.
func countSplits(f dfs.FS, staging string, job wire.JobID) (int, error) {
	name := splitsName(staging, job)
	file, err := f.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	_, n, err := splitsHeadOf(file)
	if err == nil && n > maxSplits {
		err = fmt.Errorf("%w: %d splits", ErrCorrupt, n)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return n, nil
}

// splitsHeadOf reads the version and the number of splits.
func splitsHeadOf(file io.ReaderAt) (old bool, n int, err error) {
	var head [splitsHead]byte
	if err := readAt(file, head[:], 0); err != nil {
		return false, 0, err
	}
	old, ok := splitsVersion(head[:])
	if !ok {
		return false, 0, notSplits(head[:])
	}
	return old, int(binary.LittleEndian.Uint32(head[len(splitsMagic):])), nil
}

func readEntryAt(f dfs.FS, name string, i int) (splitEntry, error) {
	file, err := f.Open(name)
	if err != nil {
		return splitEntry{}, err
	}
	defer file.Close()
	return readEntryFrom(file, i)
}

func readEntryFrom(file io.ReaderAt, i int) (splitEntry, error) {
	old, n, err := splitsHeadOf(file)
	if err != nil {
		return splitEntry{}, err
	}
	if i < 0 || i >= n {
		return splitEntry{}, fmt.Errorf("%w: no such entry among %d", ErrCorrupt, n)
	}
	var bounds [16]byte
	if err := readAt(file, bounds[:], int64(splitsHead+8*i)); err != nil {
		return splitEntry{}, err
	}
	from, to := binary.LittleEndian.Uint64(bounds[:]), binary.LittleEndian.Uint64(bounds[8:])
	if to < from || to-from > maxEntry || to > maxSplitsFile {
		return splitEntry{}, fmt.Errorf("%w: index", ErrCorrupt)
	}
	data := make([]byte, to-from)
	if err := readAt(file, data, int64(from)); err != nil {
		return splitEntry{}, err
	}
	r, err := openEntry(data, old)
	if err != nil {
		return splitEntry{}, err
	}
	e := r.entry()
	if r.invalid {
		return splitEntry{}, ErrCorrupt
	}
	return e, nil
}

// readAt fills p or returns an error.
func readAt(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return ErrTruncated
	}
	return err
}

func readAll(f dfs.FS, name string, maximum int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(file, maximum+1))
	if err != nil {
		return nil, err
	}
	if n > maximum {
		return nil, fmt.Errorf("%s: %w: longer than %d bytes", name, ErrCorrupt, maximum)
	}
	return buf.Bytes(), nil
}

func writeAll(f dfs.FS, name string, data []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// writeOnce writes a file that appears complete or not at all. An existing file stays.
// scratch is a name in the same directory that only this attempt uses.
func writeOnce(f dfs.FS, name, scratch string, data []byte) error {
	if err := f.RemoveAll(scratch); err != nil {
		return err
	}
	if err := writeAll(f, scratch, data); err != nil {
		return err
	}
	err := f.RenameFile(scratch, name)
	if errors.Is(err, fs.ErrExist) {
		return f.Remove(scratch)
	}
	return err
}
