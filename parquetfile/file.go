package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

const (
	magic          = "PAR1"
	encryptedMagic = "PARE"
	tailSize       = 8 // length of the footer, magic
)

// File is a Parquet file with a checked footer.
type File struct {
	Columns []ColumnInfo
	Root    *Node // of the schema
	Groups  []RowGroup

	// Brotli decompresses pages. If it is nil, columns with the codec BROTLI are refused: its library is large.
	Brotli func(io.Reader) io.Reader

	r         io.ReaderAt
	footer    int64 // offset
	limits    Limits
	unordered bool // statistics have no defined order
}

// RowGroup is a part of the rows.
type RowGroup struct {
	Rows   int64
	Middle int64 // offset of its middle

	chunks []chunk
}

// chunk is one column of a row group.
type chunk struct {
	meta     *format.ColumnMetaData
	from, to int64 // pages
}

// Open reads and checks the footer of a file with this size.
func Open(r io.ReaderAt, size int64, limits Limits) (*File, error) {
	f := &File{r: r, limits: limits.orDefault()}
	footer, err := f.readFooter(size)
	if err == nil {
		err = f.decodeFooter(footer)
	}
	if err != nil && isContent(err) {
		return nil, &Error{Offset: max(f.footer, 0), Group: -1, Err: err}
	}
	return f, err
}

// isContent reports whether an error is about a file's content, and not about reading it.
func isContent(err error) bool {
	return errors.Is(err, ErrFormat) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnsupported)
}

func (f *File) readFooter(size int64) ([]byte, error) {
	if size < int64(len(magic)+tailSize) {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrFormat, size)
	}
	var head [len(magic)]byte
	var tail [tailSize]byte
	if err := readAt(f.r, head[:], 0); err != nil {
		return nil, err
	}
	if err := readAt(f.r, tail[:], size-tailSize); err != nil {
		return nil, err
	}
	switch end := string(tail[4:]); {
	case string(head[:]) == encryptedMagic || end == encryptedMagic:
		return nil, unsupported("the file is encrypted")
	case string(head[:]) != magic:
		return nil, fmt.Errorf("%w: it begins with %q, not %q", ErrFormat, head[:], magic)
	case end != magic:
		return nil, fmt.Errorf("%w: it ends with %q, not %q; its end is missing or damaged", ErrTruncated, end, magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	f.footer = size - tailSize
	if length > f.footer-int64(len(magic)) {
		return nil, damaged("the footer's length is %d, but the file has %d bytes", length, size)
	}
	f.footer -= length
	footer := make([]byte, length)
	return footer, readAt(f.r, footer, f.footer)
}

// readAt fills p, or returns an error.
func readAt(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("%w: no byte at offset %d", ErrTruncated, offset+int64(n))
	}
	return err
}

func (f *File) decodeFooter(footer []byte) error {
	meta := new(format.FileMetaData)
	n, err := decodeThrift(footer, meta)
	if err != nil {
		return fmt.Errorf("the footer: %w", err)
	}
	if meta.EncryptionAlgorithm.Value != nil {
		return unsupported("the file has encrypted columns")
	}
	if n != len(footer) {
		return damaged("the footer has %d bytes after its end", len(footer)-n)
	}
	if err = f.setSchema(meta.Schema); err != nil {
		return err
	}
	f.unordered = len(meta.ColumnOrders) != len(f.Columns)
	rows := int64(0)
	f.Groups = make([]RowGroup, len(meta.RowGroups))
	for i := range meta.RowGroups {
		if err := f.setGroup(&f.Groups[i], &meta.RowGroups[i]); err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
		rows += f.Groups[i].Rows // no overflow: see setGroup
	}
	if rows != meta.NumRows {
		return damaged("the file has %d rows, its row groups have %d", meta.NumRows, rows)
	}
	return nil
}

// maxRows bounds a row group's rows, so that sums do not overflow.
const maxRows = 1 << 40

func (f *File) setGroup(g *RowGroup, of *format.RowGroup) error {
	if of.NumRows < 0 || of.NumRows > maxRows {
		return damaged("it has %d rows", of.NumRows)
	}
	if len(of.Columns) != len(f.Columns) || len(of.Columns) == 0 {
		return damaged("it has %d columns, the schema %d", len(of.Columns), len(f.Columns))
	}
	g.Rows, g.chunks = of.NumRows, make([]chunk, len(of.Columns))
	from, to := f.footer, int64(0)
	for i := range of.Columns {
		c := &g.chunks[i]
		if err := f.setChunk(c, g, &f.Columns[i], &of.Columns[i]); err != nil {
			return fmt.Errorf("column %s: %w", f.Columns[i].Name, err)
		}
		from, to = min(from, c.from), max(to, c.to)
	}
	g.Middle = from + (to-from)/2
	return nil
}

func (f *File) setChunk(c *chunk, g *RowGroup, info *ColumnInfo, of *format.ColumnChunk) error {
	c.meta = &of.MetaData
	m := c.meta
	if of.CryptoMetadata.Value != nil || len(of.EncryptedColumnMetadata) > 0 {
		return unsupported("it is encrypted")
	}
	if of.FilePath != "" {
		return unsupported("it is in another file, %q", of.FilePath)
	}
	if !slices.Equal(m.PathInSchema, info.path) || m.Type != info.Type.Physical {
		return damaged("its data is of %q and has type %s, the schema has type %s", m.PathInSchema, m.Type, info.Type)
	}
	c.from = m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		c.from = min(c.from, m.DictionaryPageOffset)
	}
	if c.from < int64(len(magic)) || m.TotalCompressedSize < 0 || c.from > f.footer || m.TotalCompressedSize > f.footer-c.from {
		return damaged("its data are %d bytes at offset %d, but the footer begins at %d", m.TotalCompressedSize, c.from, f.footer)
	}
	c.to = c.from + m.TotalCompressedSize
	if m.NumValues < g.Rows || !info.Repeated && m.NumValues != g.Rows {
		return damaged("it has %d values in %d rows", m.NumValues, g.Rows)
	}
	return nil
}

// Bounds returns the encoded minimum and maximum of a column in a row group. They are nil if the file has none with a
// defined order.
func (f *File) Bounds(group, column int) (low, high []byte) {
	if f.unordered {
		return nil, nil
	}
	s := &f.Groups[group].chunks[column].meta.Statistics
	return s.MinValue, s.MaxValue
}
