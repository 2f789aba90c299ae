package mapreduce

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/mapreduce/internal/property"
)

// CSVFormat says how the files of [CSV] and [CSVOutput] are written. The zero value is RFC 4180 with a header.
type CSVFormat struct {
	Separator rune // between fields; 0: a comma
	NoHeader  bool // the first row is data: fields of R are the columns, in order
}

func (f CSVFormat) separator() (string, error) {
	separator := ","
	if f.Separator != 0 {
		separator = string(f.Separator)
	}
	if !utf8.ValidRune(f.Separator) || strings.Contains("\"\r\n", separator) {
		return "", fmt.Errorf("the separator cannot be %q", separator)
	}
	return separator, nil
}

// CSV reads files of comma-separated values, as in RFC 4180: a field in quotes may contain separators, line breaks
// and, doubled, quotes. Rows end with LF or CR LF. Empty lines and a byte order mark are skipped.
//
// R is a struct or []string. The first row of each file names the columns. A field of R has the column of its tag
// csv:"name", or else of its own name; csv:"-" leaves a field out. Other columns are ignored. Fields are strings,
// booleans, numbers, types with UnmarshalText such as time.Time, and pointers to these, which are nil if the text
// is empty. A file without the column of a field, a row with more or fewer fields than the first one, and a field
// that cannot be converted fail the job. The error names file and line. A job that skips bad records skips
// such rows, except for misplaced quotes.
//
// A file is never split, because only its beginning tells which line breaks are within quotes. So divide large
// tables into several files. Paths and compressed files are as for [Lines].
func CSV[R any](f CSVFormat, paths ...string) Input[R] {
	spec := &inputSpec{format: "csv", paths: paths}
	separator, err := f.separator()
	if err != nil {
		spec.err = fmt.Errorf("input of CSV: %w", err)
	}
	plan, err := rowPlanOf(reflect.TypeFor[R]())
	if err != nil {
		spec.err = fmt.Errorf("input of CSV: %w", err)
	}
	return Input[R]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[R] {
			limit, _ := strconv.Atoi(t.Property(property.RecordMax))
			return func(yield func(R) bool) {
				for _, c := range in.Chunks() {
					file, err := in.Stream(c)
					if err != nil {
						t.fail(err)
						return
					}
					rows := &csvReader{in: bufio.NewReaderSize(file, 64<<10), separator: separator, limit: limit}
					more := typedRows(t, in, rows, &csvTable{plan: plan, noHeader: f.NoHeader}, yield)
					if err := file.Close(); err != nil {
						t.fail(fmt.Errorf("close %s: %w", c.Path, err))
					}
					if !more || t.err != nil {
						return
					}
				}
				in.EndRecords()
			}
		},
	}
}

// typedRows yields the rows of one file.
func typedRows[R any](t *Task, in splitReader, rows *csvReader, table *csvTable, yield func(R) bool) (more bool) {
	for {
		row, err := rows.next()
		if err == io.EOF {
			return true
		}
		in.At(rows.offset, rows.line)
		if err == nil && !table.begun {
			var isData bool
			if isData, err = table.begin(row); err == nil && !isData {
				continue
			}
		}
		if err != nil {
			if _, malformed := errors.AsType[*csvError](err); malformed {
				err = BadInput(err)
			}
			t.fail(errorAt(in, err))
			return false
		}
		more, skip := in.CountRecord()
		if !more {
			return false
		}
		if skip {
			continue
		}
		var rec R
		if err := table.decode(row, &rec); err != nil {
			t.fail(errorAt(in, t.badRecord(err)))
			return false
		}
		if !yield(rec) {
			return false
		}
	}
}

// badRecord marks an error of a record's content: every attempt would have it, unless the job skips bad records.
func (t *Task) badRecord(err error) error {
	if t.skipsRecords() {
		return err
	}
	return BadInput(err)
}

func (t *Task) skipsRecords() bool {
	skips := t.Property(property.SkipRecords)
	return skips != "" && skips != "0"
}

// csvError is an error of a file's content.
type csvError struct{ text string }

func (e *csvError) Error() string { return e.text }

func badCSV(format string, args ...any) error { return &csvError{fmt.Sprintf(format, args...)} }

// csvReader reads the rows of a file.
type csvReader struct {
	in        *bufio.Reader
	separator string
	limit     int // bytes of a row; 0: none

	offset, line int64 // of the current row; the first line is 1
	following    int64 // offset of the next line
	lines        int64 // read so far
	raw          []byte
	fields       []string
}

// next returns the next row, or io.EOF. The slice is valid until the next call, and its strings for ever.
func (r *csvReader) next() ([]string, error) {
	for {
		if err := r.readRow(); err != nil {
			return nil, err
		}
		if text := string(trimLineEnd(r.raw)); text != "" {
			return r.parse(text)
		}
	}
}

// readRow reads lines until their quotes are even in number: then the last line break is not within quotes.
func (r *csvReader) readRow() error {
	r.raw, r.offset, r.line = r.raw[:0], r.following, r.lines+1
	for quotes := 0; ; {
		from := len(r.raw)
		err := r.readLine()
		added := r.raw[from:]
		r.following += int64(len(added))
		if r.offset == 0 && from == 0 && bytes.HasPrefix(added, []byte("\xef\xbb\xbf")) {
			r.raw = r.raw[:copy(r.raw, added[3:])]
			added, r.offset = r.raw, 3
		}
		quotes += bytes.Count(added, []byte{'"'})
		switch {
		case r.limit > 0 && len(r.raw) > r.limit+2:
			return badCSV("the row is longer than %s=%d; are its quotes closed?", property.RecordMax, r.limit)
		case err == io.EOF && len(r.raw) > 0:
			return nil
		case err != nil:
			return err
		}
		if r.lines++; quotes%2 == 0 {
			return nil
		}
	}
}

// readLine appends a line with its end, or the beginning of a long line that is above the limit.
func (r *csvReader) readLine() error {
	for {
		part, err := r.in.ReadSlice('\n')
		r.raw = append(r.raw, part...)
		if err != bufio.ErrBufferFull {
			return err
		}
		if r.limit > 0 && len(r.raw) > r.limit+2 {
			return nil
		}
	}
}

func trimLineEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
}

// parse divides a row into fields.
func (r *csvReader) parse(text string) ([]string, error) {
	r.fields = r.fields[:0]
	for {
		field, rest, last := text, "", true
		if strings.HasPrefix(text, `"`) {
			end := closingQuote(text)
			if end < 0 {
				return nil, badCSV("field %d has no closing quote", len(r.fields)+1)
			}
			field, rest = strings.ReplaceAll(text[1:end], `""`, `"`), text[end+1:]
			if last = rest == ""; !last {
				var found bool
				if rest, found = strings.CutPrefix(rest, r.separator); !found {
					return nil, badCSV("field %d has text after its closing quote", len(r.fields)+1)
				}
			}
		} else {
			var found bool
			field, rest, found = strings.Cut(text, r.separator)
			last = !found
			if strings.Contains(field, `"`) {
				return nil, badCSV("field %d has a quote, but does not begin with one; put it in quotes, and double the quotes in it", len(r.fields)+1)
			}
		}
		r.fields = append(r.fields, field)
		if last {
			return r.fields, nil
		}
		text = rest
	}
}

// closingQuote returns the index of the quote that ends a quoted field, which begins the text; -1: there is none.
func closingQuote(text string) int {
	for i := 1; ; i += 2 {
		n := strings.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		if i += n; !strings.HasPrefix(text[i+1:], `"`) {
			return i
		}
	}
}

// csvTable is one file: its columns, and where the fields of a row are.
type csvTable struct {
	plan     *rowPlan
	noHeader bool
	begun    bool
	width    int   // fields of each row
	at       []int // by column of the plan: the index of its field
}

// begin takes the first row, and reports whether it is data.
func (c *csvTable) begin(row []string) (isData bool, err error) {
	c.begun, c.width = true, len(row)
	c.at = make([]int, len(c.plan.columns))
	if c.noHeader {
		if c.plan.columns != nil {
			c.width = len(c.plan.columns)
		}
		for i := range c.at {
			c.at[i] = i
		}
		return true, nil
	}
	for i, column := range c.plan.columns {
		c.at[i] = slices.Index(row, column.name)
		switch {
		case c.at[i] < 0:
			return false, badCSV("there is no column %q; the columns are: %s", column.name, strings.Join(row, ", "))
		case slices.Contains(row[c.at[i]+1:], column.name):
			return false, badCSV("two columns are named %q", column.name)
		}
	}
	return false, nil
}

// decode sets a record, a pointer to the plan's type, from a row.
func (c *csvTable) decode(row []string, rec any) error {
	if len(row) != c.width {
		what := "the first row has"
		if c.noHeader && c.plan.columns != nil {
			what = "its type has"
		}
		return badCSV("the row has %d fields, but %s %d", len(row), what, c.width)
	}
	if c.plan.columns == nil {
		*rec.(*[]string) = slices.Clone(row)
		return nil
	}
	v := reflect.ValueOf(rec).Elem()
	for i := range c.plan.columns {
		column := &c.plan.columns[i]
		if err := column.set(column.field(v), row[c.at[i]]); err != nil {
			return fmt.Errorf("column %s: %w", column.name, err)
		}
	}
	return nil
}
