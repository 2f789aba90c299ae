package parquetfile

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

const (
	readSize  = 128 << 10
	maxHeader = 1 << 20 // bytes of a page's header, which can have statistics
)

// Column reads the values of a column in one row group.
type Column[V Value] struct {
	f      *File
	info   *ColumnInfo
	chunk  *chunk
	group  int
	offset int64 // of the next page
	r      *bufio.Reader

	left       int64 // values of the pages that were not read
	page       page[V]
	dictionary []V
	stored     []byte // reused
	content    []byte // reused
	levels     []uint32
	compact    []V
}

// page is the rest of a data page.
type page[V Value] struct {
	left        int // values, with nulls
	repetitions hybrid
	levels      hybrid // definition levels
	values      decoder[V]
}

// ReadColumn begins to read a column. V must be the Go type of its physical type.
func ReadColumn[V Value](f *File, group, column int) (*Column[V], error) {
	r, err := readColumn[V](f, group, column)
	if err == nil && r.info.Repeated {
		err = r.bad(unsupported("a column of type %s", r.info.TypeName()))
	}
	return r, err
}

// readColumn begins to read a column, which may be repeated.
func readColumn[V Value](f *File, group, column int) (*Column[V], error) {
	info, c := &f.Columns[column], &f.Groups[group].chunks[column]
	r := &Column[V]{f: f, info: info, chunk: c, group: group, offset: c.from, left: c.meta.NumValues}
	if err := f.checkCodec(c.meta.Codec); err != nil {
		return nil, r.bad(err)
	}
	r.r = bufio.NewReaderSize(io.NewSectionReader(f.r, c.from, c.to-c.from), int(min(readSize, c.to-c.from+1)))
	return r, nil
}

// bad adds the place to an error of the content.
func (c *Column[V]) bad(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = damaged("its pages end %d values too early", c.left)
	}
	if isContent(err) {
		err = &Error{Offset: c.offset, Group: c.group, Column: c.info.Name, Err: err}
	}
	return err
}

// Next reads the next values of the column. If some of them are null, it returns true, and null tells which; their
// values are zero. Otherwise null has no meaning. Strings may be kept.
func (c *Column[V]) Next(values []V, null []bool) (nulls bool, err error) {
	for done := 0; done < len(values) && err == nil; {
		if c.page.left == 0 {
			err = c.nextPage()
			continue
		}
		n := min(c.page.left, len(values)-done)
		var some bool
		if some, err = c.read(values[done:done+n], null[done:done+n]); some && !nulls {
			nulls = true
			clear(null[:done])
		} else if nulls && !some {
			clear(null[done : done+n])
		}
		c.page.left -= n
		done += n
	}
	if err != nil {
		return false, c.bad(err)
	}
	return nulls, nil
}

// read reads values of the current page.
func (c *Column[V]) read(values []V, null []bool) (nulls bool, err error) {
	if c.info.maxDef == 0 {
		return false, c.page.values(values)
	}
	n, err := c.page.levels.same(uint32(c.info.maxDef), len(values))
	if err != nil {
		return false, err
	}
	if n == len(values) {
		return false, c.page.values(values)
	}
	if len(c.levels) < len(values) {
		c.levels, c.compact = make([]uint32, len(values)), make([]V, len(values))
	}
	levels := c.levels[:len(values)]
	for i := range n {
		levels[i] = uint32(c.info.maxDef)
	}
	if err := c.page.levels.read(levels[n:]); err != nil {
		return false, err
	}
	present := 0
	for i, level := range levels {
		if level > uint32(c.info.maxDef) {
			return false, damaged("a value has level %d of %d", level, c.info.maxDef)
		}
		if null[i] = level < uint32(c.info.maxDef); !null[i] {
			present++
		}
	}
	if present == len(values) {
		return false, c.page.values(values)
	}
	compact := c.compact[:present]
	if err := c.page.values(compact); err != nil {
		return false, err
	}
	clear(values)
	for i, next := 0, 0; i < len(values); i++ {
		if !null[i] {
			values[i] = compact[next]
			next++
		}
	}
	return true, nil
}

// nextPage reads the next data page, and the dictionary before it.
func (c *Column[V]) nextPage() error {
	if c.left <= 0 {
		return damaged("it has fewer values than rows")
	}
	h, err := c.header()
	if err != nil {
		return err
	}
	size := int(h.CompressedPageSize)
	if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || int64(size) > c.chunk.to-c.offset {
		return damaged("a page of %d bytes, %d without compression, where the column has only %d", size, h.UncompressedPageSize, c.chunk.to-c.offset)
	}
	c.stored = grown(c.stored, size)
	if _, err := io.ReadFull(c.r, c.stored); err != nil {
		return err
	}
	if h.CRC != 0 && crc32.ChecksumIEEE(c.stored) != uint32(h.CRC) {
		return damaged("the checksum of a page is wrong")
	}
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		err = c.setDictionary(h)
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		err = c.setPage(h)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		err = c.setPageV2(h)
	case h.Type == format.IndexPage:
	default:
		err = damaged("a page of type %d without its header", h.Type)
	}
	if err == nil {
		c.offset += int64(size)
	}
	return err
}

// grown returns a slice of n bytes with padding after it, in the memory of b if it is large enough.
func grown(b []byte, n int) []byte {
	if cap(b) < n+padding {
		return make([]byte, n, n+n/4+padding)
	}
	return b[:n]
}

func (c *Column[V]) header() (*format.PageHeader, error) {
	for n := 256; ; n *= 4 {
		data, err := c.peek(n)
		if err != nil {
			return nil, err
		}
		h := new(format.PageHeader)
		length, err := decodeThrift(data, h)
		if err == errShort && n < maxHeader && len(data) == n {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the header of a page: %w", err)
		}
		c.offset += int64(length)
		_, err = c.r.Discard(length)
		return h, err
	}
}

// peek returns the next n bytes, or what is left of the column.
func (c *Column[V]) peek(n int) ([]byte, error) {
	n = int(min(int64(n), c.chunk.to-c.offset)) // a larger n than the buffer would hide errors of reading
	if n > c.r.Size() {
		c.r = bufio.NewReaderSize(io.NewSectionReader(c.f.r, c.offset, c.chunk.to-c.offset), n)
	}
	return c.r.Peek(n)
}

// decompressed returns the content of compressed bytes.
func (c *Column[V]) decompressed(stored []byte, size int32) ([]byte, error) {
	if size < 0 {
		return nil, damaged("a page has %d bytes", size)
	}
	if err := c.f.limits.checkSize(c.chunk.meta.Codec, int64(len(stored)), int64(size)); err != nil {
		return nil, err
	}
	c.content = grown(c.content, int(size))
	return c.content, c.f.decompress(c.chunk.meta.Codec, c.content, stored)
}

func (c *Column[V]) setDictionary(h *format.PageHeader) error {
	if c.dictionary != nil {
		return damaged("there is a second dictionary")
	}
	d := &h.DictionaryPageHeader.V
	//lint:ignore SA1019 older writers use it
	if d.Encoding != format.Plain && d.Encoding != format.PlainDictionary {
		return unsupported("encoding %s of a dictionary", d.Encoding)
	}
	data, err := c.decompressed(c.stored, h.UncompressedPageSize)
	if err != nil {
		return err
	}
	if least := int64(max(width(c.info.Type), 4)); d.NumValues < 0 || least*int64(d.NumValues) > int64(len(data)) {
		return damaged("a dictionary has %d values in %d bytes", d.NumValues, len(data))
	}
	c.dictionary = make([]V, d.NumValues)
	return plain[V](c.info.Type, data)(c.dictionary)
}

// begin sets the current page. Levels are empty if the column has none.
func (c *Column[V]) begin(n int32, e format.Encoding, repetitions, levels, values []byte) (err error) {
	if n < 0 || int64(n) > c.left {
		return damaged("a page has %d values, the column %d more", n, c.left)
	}
	p := page[V]{left: int(n)}
	if p.repetitions, err = newHybrid(repetitions, uint(bits.Len8(c.info.maxRep))); err != nil {
		return err
	}
	if p.levels, err = newHybrid(levels, uint(bits.Len8(c.info.maxDef))); err != nil {
		return err
	}
	if p.values, err = decoderOf(c.info.Type, e, c.dictionary, values); err != nil {
		return err
	}
	c.page, c.left = p, c.left-int64(n)
	return nil
}

func (c *Column[V]) setPage(h *format.PageHeader) error {
	d := &h.DataPageHeader.V
	data, err := c.decompressed(c.stored, h.UncompressedPageSize)
	if err != nil {
		return err
	}
	repetitions, data, err := levelsOf(c.info.maxRep, d.RepetitionLevelEncoding, data)
	if err != nil {
		return err
	}
	levels, data, err := levelsOf(c.info.maxDef, d.DefinitionLevelEncoding, data)
	if err != nil {
		return err
	}
	return c.begin(d.NumValues, d.Encoding, repetitions, levels, data)
}

// levelsOf returns levels, and what comes after them.
func levelsOf(most uint8, e format.Encoding, data []byte) (levels, rest []byte, err error) {
	if most == 0 {
		return nil, data, nil
	}
	if e != format.RLE {
		return nil, nil, unsupported("encoding %s of levels", e)
	}
	levels, rest, ok := withLength(data)
	if !ok {
		return nil, nil, damaged("the levels of a page end too early")
	}
	return levels, rest, nil
}

func (c *Column[V]) setPageV2(h *format.PageHeader) (err error) {
	d := &h.DataPageHeaderV2.V
	m, n := d.RepetitionLevelsByteLength, d.DefinitionLevelsByteLength
	if m < 0 || n < 0 || int64(m)+int64(n) > min(int64(len(c.stored)), int64(h.UncompressedPageSize)) || c.info.maxRep == 0 && (m > 0 || d.NumRows != d.NumValues) {
		return damaged("a page of %d bytes has levels of %d and %d bytes, %d values and %d rows", len(c.stored), n, m, d.NumValues, d.NumRows)
	}
	repetitions, levels, data := c.stored[:m], c.stored[m:m+n], c.stored[m+n:]
	if !d.IsCompressed.Valid || d.IsCompressed.V {
		if data, err = c.decompressed(data, h.UncompressedPageSize-m-n); err != nil {
			return err
		}
	} else if len(data) != int(h.UncompressedPageSize-m-n) {
		return damaged("a page of %d bytes should have %d", len(data), h.UncompressedPageSize-m-n)
	}
	return c.begin(d.NumValues, d.Encoding, repetitions, levels, data)
}
