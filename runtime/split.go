package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// blockSize is how much of a file is read at once. Lines keep each block apart,
// and this size stays in a core's cache from its reading to its last line: 1 MiB
// measured 1.9 GB/s where this measures 3.4.
const blockSize = 256 << 10

// Split is the input of one map: pieces of one input's files, in their order. Of
// its iterators one is used, once. They end early when the loop breaks off, and
// on the first error, which [Split.Err] then gives; counters of what was read are
// kept here.
type Split struct {
	Input int // index in JobPlan.Inputs

	ctx       context.Context
	fs        dfs.FS
	in        *wire.InputPlan
	chunks    []Chunk
	own       bool // the job's code reads the bytes
	recordMax int
	blockSize int   // bytes read at once, of lines
	sample    int64 // record bytes to read at most; of a whole split MaxInt64
	stops     bool  // the records end with the sample
	pulse     *pulse

	meter    meter
	raw      atomic.Int64 // bytes read from files, also beyond the split
	consumed int64        // bytes of the records given, with what separates them
	input    int64        // the same, but of a compressed file as it is stored
	records  int64
	path     string // of the file that the last record was in, "" when the records are over
	at       int64  // its offset there, or in the content of a compressed file; -1: not known
	err      error

	slab  []byte // unused rest of the last small block
	plain *bufio.Reader
	gzip  *gzip.Reader
	zstd  *zstd.Decoder
}

func newSplit(ctx context.Context, f dfs.FS, e splitEntry, in *wire.InputPlan, s settings, p *pulse) *Split {
	return &Split{Input: e.Input, meter: meter{nodes: e.Nodes}, ctx: ctx, fs: f, in: in, chunks: e.Chunks,
		recordMax: s.recordMax, blockSize: blockSize, sample: math.MaxInt64, pulse: p}
}

// Where is the file and offset of the record given last, for what is said of it; ""
// when there is none, and of a binary file, which no user has written.
func (s *Split) Where() string {
	switch {
	case s.path == "":
		return ""
	case s.at < 0:
		return s.path
	}
	return fmt.Sprintf("%s, offset %d", s.path, s.at)
}

// Err is why the records ended: nil at the end of the split.
func (s *Split) Err() error { return s.err }

// Chunks are the pieces of files to read, for a format of one's own: the records
// that begin within a chunk are the chunk's.
func (s *Split) Chunks() []Chunk { return s.chunks }

// Open opens a chunk's file, for a format of one's own.
func (s *Split) Open(c Chunk) (ReadAtCloser, error) {
	f, err := s.open(c)
	if err != nil {
		return nil, err
	}
	s.own, s.path, s.at = true, c.Path, -1
	return &openChunk{File: f, split: s}, nil
}

// CountRecord counts one record of a format of one's own, and says whether it is to be
// given to the job; the other iterators count for themselves.
func (s *Split) CountRecord() bool {
	s.records++
	s.pulse.beat()
	return !s.stops || s.raw.Load() < s.sample
}

// open opens a chunk's file, which must be the one that the splits were computed
// from: other maps have read, or will read, what it held then.
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

// openChunk counts what is read and stops when the attempt is to end.
type openChunk struct {
	dfs.File
	split *Split
}

func (c *openChunk) ReadAt(p []byte, off int64) (int, error) {
	if err := c.split.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.File.ReadAt(p, off)
	c.split.raw.Add(int64(n))
	c.split.pulse.beat()
	if errors.Is(err, dfs.ErrChanged) || missing(err) || errors.Is(err, fs.ErrPermission) {
		err = Fatal(err)
	}
	return n, err
}

func (s *Split) close() {
	if s.zstd != nil {
		s.zstd.Close()
	}
}

// bytesRead is the bytes of input that became records.
func (s *Split) bytesRead() int64 {
	if s.own {
		return min(s.raw.Load(), s.length())
	}
	return s.input
}

// length is the bytes of input; of compressed files as they are stored.
func (s *Split) length() (n int64) {
	for _, c := range s.chunks {
		n += c.Length
	}
	return n
}

// fail keeps the first error and names the file where the error does not.
func (s *Split) fail(c Chunk, err error) {
	if s.err != nil {
		return
	}
	switch kind := compressed(c.Path); {
	case kind == "":
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = Fatal(fmt.Errorf("%w: it ends within its %s", ErrTruncated, kind))
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		err = Fatal(fmt.Errorf("%w: not all of its content is %s, as its name says; remove the rest (padding?) or rename the file", ErrInput, kind))
	}
	if _, local, _ := strings.Cut(c.Path, "://"); !strings.Contains(err.Error(), local) { // local files are named without scheme
		err = fmt.Errorf("read %s: %w", c.Path, err)
	}
	s.err = err
}

// stream reads a chunk's file from an offset to its end, or the whole content of
// a compressed one.
type stream struct {
	io.Reader
	file *meteredFile
	end  int64 // offset in the content where the chunk ends
}

func (s *Split) stream(c Chunk, from int64) (*stream, error) {
	file, err := s.open(c)
	if err != nil {
		return nil, err
	}
	raw := io.NewSectionReader(&openChunk{File: file, split: s}, from, math.MaxInt64-from)
	in := &stream{Reader: raw, file: file, end: c.Offset + c.Length}
	if kind := compressed(c.Path); kind != "" {
		in.end = s.sample
		if in.Reader, err = s.decompress(kind, raw); err != nil {
			file.Close()
			return nil, err
		}
	}
	return in, nil
}

const (
	compressedBuffer = 256 << 10
	maxZstdWindow    = 128 << 20 // what zstd --long makes
)

func (s *Split) decompress(kind string, raw io.Reader) (io.Reader, error) {
	if s.plain == nil {
		s.plain = bufio.NewReaderSize(nil, compressedBuffer)
	}
	s.plain.Reset(raw)
	var err error
	switch {
	case kind == gzipped && s.gzip == nil:
		s.gzip, err = gzip.NewReader(s.plain)
	case kind == gzipped:
		err = s.gzip.Reset(s.plain)
	case s.zstd == nil:
		s.zstd, err = zstd.NewReader(s.plain, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	default:
		err = s.zstd.Reset(s.plain)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if kind == gzipped {
		s.gzip.Multistream(false)
		return &members{Reader: s.gzip, raw: s.plain}, nil
	}
	return s.zstd, nil
}

// members reads the gzip data of a file, one member after the other. By itself the
// gzip.Reader takes a few bytes behind them for a member that is cut off.
type members struct {
	*gzip.Reader
	raw *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.Reader.Read(p)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil // and EOF next
		}
		next, err := m.raw.Peek(2)
		switch {
		case len(next) == 0:
			return 0, err
		case next[0] != 0x1f || len(next) == 2 && next[1] != 0x8b:
			return 0, gzip.ErrHeader
		}
		if err := m.Reset(m.raw); err != nil {
			return 0, err
		}
		m.Multistream(false)
	}
}

// each opens chunk after chunk for read, until it returns false or an error.
func (s *Split) each(from func(Chunk) int64, read func(c Chunk, in *stream, from int64) (more bool, err error)) {
	for _, c := range s.chunks {
		if s.err != nil || s.consumed >= s.sample {
			return
		}
		off := from(c)
		in, err := s.stream(c, off)
		if err != nil {
			s.fail(c, err)
			return
		}
		before := s.consumed
		s.path, s.at = c.Path, -1
		more, err := read(c, in, off)
		in.file.Close()
		if s.input += s.consumed - before; compressed(c.Path) != "" {
			s.input += c.Length - (s.consumed - before)
		}
		if err != nil {
			s.fail(c, err)
		}
		if !more {
			return
		}
	}
	s.path = ""
}

func atOffset(c Chunk) int64 { return c.Offset }

// readFull reads until p is full or the content ends. A plain file that ends
// before its chunk does has lost data since the splits were computed.
func (s *Split) readFull(c Chunk, in *stream, p []byte, at int64) (n int, end bool, err error) {
	n, err = io.ReadFull(in, p)
	if err == io.EOF || err == io.ErrUnexpectedEOF && s.endedPlainly(c, in) {
		if stop := at + int64(n); compressed(c.Path) == "" && stop < c.Offset+c.Length {
			return n, true, fmt.Errorf("%w: %d bytes, it had %d when the splits were computed", ErrTruncated, stop, c.Size)
		}
		return n, true, nil
	}
	return n, false, err
}

// endedPlainly tells io.ReadFull's ErrUnexpectedEOF, which means that p is not
// full, from a decompressor's, which means that its data is cut off: only after
// the first does another read say io.EOF.
func (s *Split) endedPlainly(c Chunk, in *stream) bool {
	if compressed(c.Path) == "" {
		return true
	}
	var one [1]byte
	n, err := in.Read(one[:])
	return n == 0 && err == io.EOF
}

// Records gives records of a fixed size. A record is valid until the next one.
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
	for at < in.end {
		want := block
		if left := in.end - at; left < int64(len(block)) {
			want = block[:(left+int64(size)-1)/int64(size)*int64(size)]
		}
		n, end, err := s.readFull(c, in, want, at)
		if err != nil {
			return false, err
		}
		whole := n / size * size
		for i := 0; i < whole; i += size {
			s.records++
			s.at = at + int64(i)
			s.consumed += int64(size)
			s.pulse.beat()
			if !yield(want[i : i+size : i+size]) {
				return false, nil
			}
		}
		if whole < n {
			return false, Fatal(fmt.Errorf("%w: the last record has %d of %d bytes", ErrTruncated, n-whole, size))
		}
		if end {
			break
		}
		at += int64(n)
	}
	return true, nil
}

// Files gives each file's URL and content. The content is valid until the next file.
func (s *Split) Files() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		var content []byte
		s.each(atOffset, func(c Chunk, in *stream, _ int64) (bool, error) {
			var err error
			if content, err = s.contentOf(c, in, content[:0]); err != nil {
				return false, err
			}
			s.records++
			s.consumed += int64(len(content))
			s.pulse.beat()
			return yield(c.Path, content), nil
		})
	}
}

func (s *Split) contentOf(c Chunk, in *stream, content []byte) ([]byte, error) {
	if compressed(c.Path) == "" && c.Size <= int64(s.recordMax) && int64(cap(content)) <= c.Size {
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
			return nil, tooLarge(c.Path, 0, s.recordMax)
		}
		if err == io.EOF {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func tooLarge(path string, offset int64, limit int) error {
	return Fatal(fmt.Errorf("read %s: %w: at offset %d one is longer than %s=%d", path, ErrRecordTooLarge, offset, RecordMaxBytes, limit))
}
