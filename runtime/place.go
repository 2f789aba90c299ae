package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxCounted limits the bytes of a file that are read to count lines for a message.
const maxCounted = 256 << 20

// Where returns the file and offset of the current record, for messages, and its line if the file has lines, and only
// a few before the split. It returns "" if there is no record.
func (s *Split) Where() string {
	switch {
	case s.path == "":
		return ""
	case s.recordAt < 0:
		return s.path
	}
	where := s.path + ", " + s.place(s.recordAt)
	if s.lines.from > maxCounted && s.lines.before < 0 {
		return where
	}
	if line, err := s.Line(); err == nil && line > 0 {
		where = fmt.Sprintf("%s, line %d", where, line)
	}
	return where
}

// place describes an offset in the current file's content.
func (s *Split) place(offset int64) string {
	if s.pieceAt > 0 {
		return fmt.Sprintf("offset %d of the content after byte %d of the compressed file", offset, s.pieceAt)
	}
	return fmt.Sprintf("offset %d", offset)
}

// Offset returns the offset of the current record: of a compressed file, in the content that the split reads.
func (s *Split) Offset() int64 { return s.recordAt }

// Place returns the file of the current record, "" if there is none, and its offset in the content,
// -1 if it is not known.
func (s *Split) Place() (file string, offset int64) {
	if s.path == "" || s.pieceAt > 0 {
		return s.path, -1
	}
	return s.path, s.recordAt
}

// At says where the next record of an author's own format begins: its offset, and its line from 1; 0: it has none.
func (s *Split) At(offset, line int64) { s.recordAt, s.line = offset, line }

// lineCount is what the number of a line follows from, without any work per line.
type lineCount struct {
	chunk   Chunk
	begun   bool  // the split has lines, and a chunk of them is being read
	from    int64 // offset of the chunk's first line in the content
	before  int64 // lines of the file before from; -1: not counted yet
	records int64 // of the split before the chunk
	left    int64 // lines of the chunk that did not become records
}

var errNoLine = errors.New("the input's records have no lines")

// Line returns the number of the current line in its file, from 1. The first call in a chunk that does not
// begin its file reads the file up to the chunk.
func (s *Split) Line() (int64, error) {
	switch {
	case s.path == "":
		return 0, errors.New("there is no current record")
	case s.line > 0:
		return s.line, nil
	case !s.lines.begun:
		return 0, errNoLine
	case s.delimiter != "":
		return 0, fmt.Errorf("%w: they end with %s", errNoLine, RecordDelimiter)
	case s.pieceAt > 0:
		return 0, fmt.Errorf("the number of a line of %s is not known: this map reads only the part after byte %d of the compressed file", s.path, s.pieceAt)
	}
	if s.lines.before < 0 {
		n, err := s.linesBefore(s.lines.chunk, s.lines.from)
		if err != nil {
			return 0, fmt.Errorf("count the lines of %s before offset %d: %w", s.path, s.lines.from, err)
		}
		s.lines.before = n
	}
	return s.lines.before + s.records - s.lines.records + s.lines.left, nil
}

// linesBefore counts the line feeds of a file before an offset.
func (s *Split) linesBefore(c Chunk, offset int64) (n int64, err error) {
	if offset == 0 {
		return 0, nil
	}
	file, err := s.open(c)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	block := make([]byte, min(blockSize, offset))
	for at := int64(0); at < offset; {
		want := block[:min(int64(len(block)), offset-at)]
		k, err := (&openChunk{File: file, split: s}).ReadAt(want, at)
		if k == 0 && err != nil {
			return 0, err
		}
		n += int64(bytes.Count(want[:k], []byte(lineFeed)))
		at += int64(k)
	}
	return n, nil
}

// Stream opens a chunk's file from the chunk's beginning to the file's end, for an author's own format:
// its files are not cut. A file with a codec's suffix is decompressed.
func (s *Split) Stream(c Chunk) (io.ReadCloser, error) {
	in, err := s.stream(c, c.Offset)
	if err != nil {
		return nil, err
	}
	s.ownFormat, s.path, s.recordAt, s.line, s.pieceAt = true, c.Path, -1, 0, 0
	return &fileStream{stream: in, split: s, chunk: c}, nil
}

// fileStream names the file in errors of reading it, and notices that it has lost data.
type fileStream struct {
	*stream
	split *Split
	chunk Chunk
	read  int64
}

func (f *fileStream) Read(p []byte) (int, error) {
	n, err := f.stream.Read(p)
	f.read += int64(n)
	switch {
	case err == nil:
	case err != io.EOF:
		f.split.fail(f.chunk, err)
		err = f.split.err
	case f.packed == nil && f.chunk.Offset+f.read < f.chunk.Size:
		err = fmt.Errorf("%w: %d bytes, it had %d when the splits were computed", ErrTruncated, f.chunk.Offset+f.read, f.chunk.Size)
		f.split.fail(f.chunk, err)
		err = f.split.err
	}
	return n, err
}

func (f *fileStream) Close() error { return f.file.Close() }
