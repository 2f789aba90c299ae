package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"strings"
	"sync/atomic"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime/search"
	"github.com/quernmr/quern/wire"
)

// blockSize is the size of one read of a file. Lines allocates a block for each read. A
// block of this size stays in a core's cache until its last line is read: it gave 3.4 GB/s,
// a block of 1 MiB 1.9 GB/s.
const blockSize = 256 << 10

// fewRecords are in any sample of an author's own format, even if it reads large blocks for its first record.
const fewRecords = 1000

// Split is the input of one map: pieces of one input's files, in order. Use one of its
// iterators, once. It ends early when the loop breaks or the attempt must end, and on the first
// error, which [Split.Err] returns. Split also counts the records and bytes read.
type Split struct {
	Input int // index in JobPlan.Inputs

	ctx          context.Context
	fs           dfs.FS
	in           *wire.InputPlan
	chunks       []Chunk
	ownFormat    bool   // the job's own code reads the bytes
	recordMax    int    // maximum bytes of a record
	lineMax      int    // bytes from which a line is left out
	cutAtLines   bool   // lines belong to the chunk in which they begin
	delimiter    string // ends a line; empty: LF or CR LF
	ratioMax     int64  // maximum bytes that a compressed byte may become
	blockSize    int    // bytes per read, for lines
	sample       int64  // maximum record bytes to read; MaxInt64 for a whole split
	stopAtSample bool   // an own format's records end at sample too; generated ones after sampledKeys
	pulse        *pulse

	meter       meter
	rawBytes    atomic.Int64 // bytes read from files, also beyond the split
	recordBytes int64        // bytes of the yielded records, with their separators
	inputBytes  int64        // the same; compressed files count with their stored size
	records     int64
	path        string // file of the current record, "" after the last record
	recordAt    int64  // offset of the current record, in the content if compressed; -1: not known
	pieceAt     int64  // offset in the compressed file after which the content begins; 0: recordAt counts from the file's beginning
	line        int64  // of the current record, if an own format has said it; 0: not known
	lines       lineCount
	err         error
	skip        *skipping // nil: nothing is skipped

	search   *search.Lines // of the predicates; nil: none
	searched []byte        // the block of a search

	slab    []byte // unused rest of the last small block
	readers map[*compression.Codec]*compression.Reader
}

func newSplit(ctx context.Context, f dfs.FS, e splitEntry, in *wire.InputPlan, s settings, p *pulse) *Split {
	delimiter, cutAtLines := "", in != nil && in.Format == "nlines"
	if in != nil && (in.Format == "lines" || isText(in)) { // in Hadoop too, KeyValues and NLines have lines
		delimiter = s.delimiter
	}
	return &Split{Input: e.Input, meter: meter{nodes: e.Nodes}, ctx: ctx, fs: f, in: in, chunks: e.Chunks,
		recordMax: s.recordMax, lineMax: s.lineMax, cutAtLines: cutAtLines, delimiter: delimiter, ratioMax: s.ratioMax, blockSize: blockSize, sample: math.MaxInt64, pulse: p}
}

// Err returns the error that ended the records, or nil if the split was read to its end.
func (s *Split) Err() error { return s.err }

// Chunks returns the pieces of files to read, for an author's own format. A record belongs
// to the chunk that it begins in.
func (s *Split) Chunks() []Chunk { return s.chunks }

// Open opens a chunk's file, for an author's own format.
func (s *Split) Open(c Chunk) (ReadAtCloser, error) {
	f, err := s.open(c)
	if err != nil {
		return nil, err
	}
	s.ownFormat, s.path, s.recordAt, s.line = true, c.Path, -1, 0
	return &openChunk{File: f, split: s}, nil
}

// CountRecord counts one record of an author's own format. more is false if the sample is
// complete, or the attempt must end. The caller yields the record only if more is true and skip
// is false. The iterators count by themselves.
func (s *Split) CountRecord() (more, skip bool) {
	if s.skip != nil && s.skip.begin() {
		s.skipRecord("")
		return true, true
	}
	s.records++
	if !s.pulse.beat() {
		s.err = cmp.Or(s.err, s.ctx.Err())
		return false, false
	}
	return !s.stopAtSample || s.records <= fewRecords || s.rawBytes.Load() < s.sample && (s.length() > 0 || s.records <= sampledKeys), false
}

// open opens a chunk's file. It fails if the file has changed since the splits were
// computed: other maps may have read the old content.
func (s *Split) open(c Chunk) (*meteredFile, error) {
	f, err := s.fs.Open(c.Path)
	if err != nil {
		return nil, inputError(err)
	}
	if info := f.Info(); c.Modified != 0 && (info.Size != c.Size || info.Modified.UnixNano() != c.Modified) {
		f.Close()
		return nil, fmt.Errorf("read %w", changedError(c.Path))
	}
	return &meteredFile{File: f, meter: &s.meter}, nil
}

// openChunk counts the bytes read and stops when the attempt must end.
type openChunk struct {
	dfs.File
	split *Split
}

func (c *openChunk) ReadAt(p []byte, off int64) (int, error) {
	if err := c.split.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.File.ReadAt(p, off)
	c.split.rawBytes.Add(int64(n))
	c.split.pulse.beat()
	if errors.Is(err, dfs.ErrChanged) || missing(err) || errors.Is(err, fs.ErrPermission) {
		err = Fatal(err)
	}
	return n, err
}

func (s *Split) close() {
	for _, r := range s.readers {
		r.Close()
	}
}

// bytesRead returns the bytes of input that became records.
func (s *Split) bytesRead() int64 {
	if s.ownFormat {
		return min(s.rawBytes.Load(), s.length())
	}
	return s.inputBytes
}

// length returns the bytes of input. Compressed files count with their stored size.
func (s *Split) length() int64 { return totalOf(s.chunks) }

// fail keeps the first error, and adds the file's name if the error does not contain it.
func (s *Split) fail(c Chunk, err error) {
	if s.err != nil {
		return
	}
	switch {
	case errors.Is(err, compression.ErrTruncated):
		err = fatalInput(fmt.Errorf("%w: %w", ErrTruncated, err))
	case errors.Is(err, compression.ErrFormat):
		err = fatalInput(fmt.Errorf("%w: %w", ErrInput, err))
	case errors.Is(err, compression.ErrRatio):
		err = fatalInput(fmt.Errorf("%w: %w; if the file is right, raise %s", ErrInput, err, DecompressedMaxRatio))
	}
	if _, local, _ := strings.Cut(c.Path, "://"); !strings.Contains(err.Error(), local) { // errors of local files have names without scheme
		err = fmt.Errorf("read %s: %w", c.Path, err)
	}
	s.err = err
}

// stream reads a chunk's file from an offset to its end. Of a compressed file it reads the content
// of the chunk and what follows.
type stream struct {
	io.Reader
	file   *meteredFile
	packed *compression.Reader // nil: the file is not compressed
	base   int64               // offset of the first byte in the content
	stop   int64               // offset of the chunk's end in the content, as known before reading
}

// end returns the offset of the chunk's end in the content. It is known when the content is read up to there.
func (in *stream) end() int64 {
	if in.packed == nil {
		return in.stop
	}
	return min(in.stop, in.packed.End())
}

func (s *Split) stream(c Chunk, from int64) (*stream, error) {
	file, err := s.open(c)
	if err != nil {
		return nil, err
	}
	raw := io.NewSectionReader(&openChunk{File: file, split: s}, from, math.MaxInt64-from)
	codec := compression.OfFile(c.Path)
	if codec == nil {
		return &stream{Reader: raw, file: file, base: from, stop: c.Offset + c.Length}, nil
	}
	r := s.readers[codec]
	if r == nil {
		if s.readers == nil {
			s.readers = make(map[*compression.Codec]*compression.Reader)
		}
		r = codec.NewReader()
		r.MaxRatio, s.readers[codec] = s.ratioMax, r
	}
	piece := compression.Piece{From: c.Offset, To: c.Offset + c.Length}
	if c.Length == c.Size {
		piece = compression.Whole
	}
	r.Reset(raw, piece)
	return &stream{Reader: r, file: file, packed: r, stop: s.sample}, nil
}

// each opens one chunk after the other and calls read, until read returns false or an
// error.
func (s *Split) each(from func(Chunk) int64, read func(c Chunk, in *stream, from int64) (more bool, err error)) {
	for _, c := range s.chunks {
		if s.err != nil || s.recordBytes >= s.sample {
			return
		}
		in, err := s.stream(c, from(c))
		if err != nil {
			s.fail(c, err)
			return
		}
		before := s.recordBytes
		s.path, s.recordAt, s.pieceAt = c.Path, -1, 0
		more, err := read(c, in, in.base)
		in.file.Close()
		if s.inputBytes += s.recordBytes - before; in.packed != nil {
			s.inputBytes += c.Length - (s.recordBytes - before)
		}
		if err != nil {
			s.fail(c, err)
		}
		if !more {
			return
		}
	}
	s.path = ""
	s.skip.end()
}

func atOffset(c Chunk) int64 { return c.Offset }

// readFull reads until p is full or the content ends. If an uncompressed file ends before
// its chunk does, it has lost data since the splits were computed.
func (s *Split) readFull(c Chunk, in *stream, p []byte, at int64) (n int, end bool, err error) {
	n, err = io.ReadFull(in, p)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		if stop := at + int64(n); in.packed == nil && stop < c.Offset+c.Length {
			return n, true, fmt.Errorf("%w: %d bytes, it had %d when the splits were computed", ErrTruncated, stop, c.Size)
		}
		return n, true, nil
	}
	return n, false, err
}

// Records yields records of a fixed size. A record is valid until the next one.
func (s *Split) Records(size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if size < 1 || size > s.recordMax {
			s.err = Fatal(fmt.Errorf("record size %d: want 1 to %s=%d", size, RecordMaxBytes, s.recordMax))
			return
		}
		block := make([]byte, max(min(blockSize, s.length()+int64(size))/int64(size), 1)*int64(size))
		s.each(atOffset, func(c Chunk, in *stream, at int64) (bool, error) {
			return s.recordsOf(c, in, at, size, block, yield)
		})
	}
}

func (s *Split) recordsOf(c Chunk, in *stream, at int64, size int, block []byte, yield func([]byte) bool) (bool, error) {
	for at < in.end() {
		want := block
		if remaining := in.end() - at; remaining < int64(len(block)) {
			want = block[:(remaining+int64(size)-1)/int64(size)*int64(size)]
		}
		n, end, err := s.readFull(c, in, want, at)
		if err != nil {
			return false, err
		}
		whole := n / size * size
		for i := 0; i < whole; i += size {
			s.recordAt = at + int64(i)
			s.recordBytes += int64(size)
			if s.skip != nil && s.skip.begin() {
				s.skipRecord(string(want[i : i+size]))
				continue
			}
			s.records++
			if !s.pulse.beat() {
				return false, s.ctx.Err()
			}
			if !yield(want[i : i+size : i+size]) {
				return false, nil
			}
		}
		if whole < n {
			return false, fatalInput(fmt.Errorf("%w: the last record has %d of %d bytes", ErrTruncated, n-whole, size))
		}
		if end {
			break
		}
		at += int64(n)
	}
	return true, nil
}

// Files yields each file's URL and content. The content is valid until the next file.
func (s *Split) Files() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		var content []byte
		s.each(atOffset, func(c Chunk, in *stream, _ int64) (bool, error) {
			var err error
			if content, err = s.contentOf(c, in, content[:0]); err != nil {
				return false, err
			}
			s.recordBytes += int64(len(content))
			if s.skip != nil && s.skip.begin() {
				s.skipRecord(string(content))
				return true, nil
			}
			s.records++
			if !s.pulse.beat() {
				return false, s.ctx.Err()
			}
			return yield(c.Path, content), nil
		})
	}
}

func (s *Split) contentOf(c Chunk, in *stream, content []byte) ([]byte, error) {
	if in.packed == nil && c.Size <= int64(s.recordMax) && int64(cap(content)) <= c.Size {
		content = make([]byte, 0, c.Size+1)
	}
	for {
		if len(content) == cap(content) {
			grown := make([]byte, len(content), max(2*cap(content), 64<<10))
			copy(grown, content)
			content = grown
		}
		n, err := in.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if len(content) > s.recordMax {
			return nil, s.tooLarge(0)
		}
		if err == io.EOF {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// tooLarge is the error of a record of the current file.
func (s *Split) tooLarge(offset int64) error {
	return fatalInput(fmt.Errorf("read %s: %w: the record at %s is longer than %s=%d", s.path, ErrRecordTooLarge, s.place(offset), RecordMaxBytes, s.recordMax))
}
