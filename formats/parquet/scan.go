package parquet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/quernmr/quern/parquetfile"
)

const (
	// batch is the number of rows that are decoded together, column by column.
	batch = 1024
	// maxCopied limits the bytes that the fields of several rows copy, since a dictionary's value can be in each of them.
	maxCopied = 16 << 20
)

// rows is a batch of rows of any struct type.
type rows struct {
	first  unsafe.Pointer
	stride uintptr
	n      int
}

// at returns a field of row i.
func (r rows) at(i int, offset uintptr) unsafe.Pointer {
	return unsafe.Add(r.first, uintptr(i)*r.stride+offset)
}

// source is a column that a scan reads.
type source interface {
	// open begins with a row group. It returns false if the bounds of its values tell that no row is wanted.
	open(f *parquetfile.File, group int) (bool, error)
	// ahead returns how many of the next n rows a batch may have, at least one.
	ahead(n int) (int, error)
	// load begins a batch of n rows.
	load(n int) error
	// test clears keep for each row that the filter refuses.
	test(keep []bool)
	// copied returns how many bytes set copies for row i of the batch.
	copied(i int) int
	// set fills fields of rows with those of the batch from number from, which is number first of the group.
	set(r rows, from int, first int64) error
}

// scan calls yield with the wanted rows of the row groups that have their middle in [from, to), until it returns
// false. It returns the number of row groups that it read.
func scan[T any](f *parquetfile.File, filter Filter, from, to int64, yield func(T) bool) (read int, err error) {
	sources, err := bind(f, reflect.TypeFor[T](), filter)
	if err != nil {
		return 0, err
	}
	all := make([]T, batch)
	keep := make([]bool, batch)
	for g := range f.Groups {
		if group := &f.Groups[g]; group.Middle < from || group.Middle >= to || group.Rows == 0 {
			continue
		}
		wanted, err := begin(f, g, sources)
		if err != nil {
			return read, err
		}
		if !wanted {
			continue
		}
		read++
		for first, n := int64(0), 0; first < f.Groups[g].Rows; first += int64(n) {
			if n, err = ahead(sources, int(min(batch, f.Groups[g].Rows-first))); err != nil {
				return read, err
			}
			if err := load(sources, keep[:n]); err != nil {
				return read, err
			}
			for at := 0; at < n && slices.Contains(keep[at:n], true); {
				some := all[:together(sources, at, n)]
				if err := fill(sources, some, at, first); err != nil {
					return read, err
				}
				for i, row := range some {
					if keep[at+i] && !yield(row) {
						return read, nil
					}
				}
				if at += len(some); at < n {
					clear(some)
				}
			}
		}
	}
	return read, nil
}

func begin(f *parquetfile.File, group int, sources []source) (wanted bool, err error) {
	wanted = true
	for _, s := range sources {
		some, err := s.open(f, group)
		if err != nil {
			return false, err
		}
		wanted = wanted && some
	}
	return wanted, nil
}

// ahead returns how many of the next n rows are a batch.
func ahead(sources []source, n int) (_ int, err error) {
	for _, s := range sources {
		if n, err = s.ahead(n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// load begins a batch, and tells which of its rows are wanted.
func load(sources []source, keep []bool) error {
	for i := range keep {
		keep[i] = true
	}
	for _, s := range sources {
		if err := s.load(len(keep)); err != nil {
			return err
		}
		s.test(keep)
	}
	return nil
}

// together returns how many rows of a batch of n, from one on, are filled at a time.
func together(sources []source, from, n int) int {
	size := 0
	for i := from; i < n; i++ {
		for _, s := range sources {
			size += s.copied(i)
		}
		if size > maxCopied {
			return max(i-from, 1)
		}
	}
	return n - from
}

// fill fills rows with those of the batch from number from. The batch begins with row first of the group.
func fill[T any](sources []source, some []T, from int, first int64) error {
	r := rows{first: unsafe.Pointer(unsafe.SliceData(some)), stride: unsafe.Sizeof(some[0]), n: len(some)}
	for _, s := range sources {
		if err := s.set(r, from, first+int64(from)); err != nil {
			return err
		}
	}
	return nil
}

// bind finds the columns of a struct's fields and of a filter.
func bind(f *parquetfile.File, row reflect.Type, filter Filter) ([]source, error) {
	fields, err := fieldsOf(row)
	if err != nil {
		return nil, err
	}
	uses := make(map[int]*use)
	used := func(name, by string) (*use, error) {
		i := slices.IndexFunc(f.Columns, func(c parquetfile.ColumnInfo) bool { return c.Name == name })
		if i < 0 {
			return nil, mismatched("there is no column %s, which %s needs; there are %s", name, by, names(f))
		}
		if slices.ContainsFunc(f.Columns[i+1:], func(c parquetfile.ColumnInfo) bool { return c.Name == name }) {
			return nil, mismatched("there are several columns with the name %s", name)
		}
		if uses[i] == nil {
			uses[i] = &use{index: i, info: &f.Columns[i]}
		}
		return uses[i], nil
	}
	var parts []source
	for i := range fields {
		switch s, err := nestedSource(f, &fields[i]); {
		case err != nil:
			return nil, err
		case s != nil:
			parts = append(parts, s)
			continue
		}
		u, err := used(fields[i].name, "field "+fields[i].title)
		if err != nil {
			return nil, err
		}
		u.fields = append(u.fields, &fields[i])
	}
	for _, c := range filter.conditions {
		u, err := used(c.column, "the filter")
		if err != nil {
			return nil, err
		}
		u.conditions = append(u.conditions, c)
	}
	flat, err := sourcesOf(f, uses)
	return append(flat, parts...), err
}

// use is a column with what it is used for.
type use struct {
	index      int
	info       *parquetfile.ColumnInfo
	fields     []*field
	conditions []condition
}

// sourcesOf returns the sources in the order of the file.
func sourcesOf(f *parquetfile.File, uses map[int]*use) (all []source, err error) {
	for i := range f.Columns {
		if uses[i] == nil {
			continue
		}
		s, err := newSource(uses[i])
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func names(f *parquetfile.File) string {
	const most = 100
	var all []string
	for i := range f.Columns[:min(len(f.Columns), most)] {
		all = append(all, f.Columns[i].Name)
	}
	if n := len(f.Columns) - most; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, ", ")
}

// typed is a source of values of one Go type.
type typed[V parquetfile.Value] struct {
	use
	values  []V
	null    []bool
	nulls   bool // in the current batch
	n       int
	reader  *parquetfile.Column[V]
	setters []setter[V]
	copies  int // of the setters, that copy texts
	tests   []test[V]
}

// setter sets the fields of rows. null is nil if there is no null.
type setter[V parquetfile.Value] func(values []V, null []bool, r rows)

func (s *typed[V]) open(f *parquetfile.File, group int) (bool, error) {
	for _, t := range s.tests {
		if !t.maybe(f.Bounds(group, s.index)) {
			return false, nil
		}
	}
	var err error
	s.reader, err = parquetfile.ReadColumn[V](f, group, s.index)
	return true, err
}

func (s *typed[V]) ahead(n int) (int, error) { return n, nil }

func (s *typed[V]) load(n int) (err error) {
	s.n = n
	s.nulls, err = s.reader.Next(s.values[:n], s.null[:n])
	return err
}

func (s *typed[V]) test(keep []bool) {
	if s.nulls && len(s.tests) > 0 {
		for i, null := range s.null[:s.n] {
			keep[i] = keep[i] && !null
		}
	}
	for _, t := range s.tests {
		for i, v := range s.values[:s.n] {
			keep[i] = keep[i] && t.match(v)
		}
	}
}

func (s *typed[V]) copied(i int) int {
	if s.copies == 0 {
		return 0
	}
	return s.copies * len(any(s.values).([]string)[i])
}

func (s *typed[V]) set(r rows, from int, first int64) error {
	var null []bool
	if s.nulls {
		null = s.null[from : from+r.n]
		i := slices.Index(null, true)
		for _, f := range s.fields {
			if i < 0 {
				break
			}
			if !f.pointer && !f.optional {
				return mismatched("column %s is null in row %d of a row group, but field %s is no pointer and has no optional in its tag", s.info.Name, first+int64(i), f.title)
			}
		}
	}
	for _, set := range s.setters {
		set(s.values[from:from+r.n], null, r)
	}
	return nil
}
