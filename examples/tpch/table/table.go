// Package table is a small relational layer over package mapreduce. It reads text files in which
// each line is a row and each field ends with '|', as TPC's generators write them.
//
//   - [Scan] reads a table and projects each row to a key and a value.
//     [Table.Where] filters the rows first.
//   - [Lookup] joins rows with a small side by key, in the maps: each worker keeps the small side in memory.
//   - [LeftJoinGroup] joins two large sides by key, in the reduces.
//   - [Group] folds the values of each key, also in the maps.
//   - [Rows] and [Project] read a result in a later job.
//   - [Order], [Top] and [Total] write the answer as lines of text.
//
// Sums are exact, because numbers are integers: hundredths for decimals of two places,
// ten-thousandths for the product of two such decimals. [Fixed] prints them. [Add] and
// [Row.Times] fail the job if a result does not fit an int64.
//
// A line with too few or too many fields fails the job, and so does a field that cannot
// be parsed. The error names the file and offset of the line.
package table

import (
	"fmt"
	"iter"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

const maxColumns = 32

// Table describes the files and columns of a table.
type Table struct {
	path    string
	columns []string
	keep    func(*Row) bool
}

// New returns the table with the files at a path, as for [mapreduce.Lines]. Every row has a field
// for each column.
func New(path string, columns ...string) *Table {
	if len(columns) == 0 || len(columns) > maxColumns {
		panic(fmt.Sprintf("table %s has %d columns: want 1 to %d", path, len(columns), maxColumns))
	}
	return &Table{path: path, columns: columns, keep: func(*Row) bool { return true }}
}

// Where returns the table with only the rows for which keep is true.
func (t *Table) Where(keep func(*Row) bool) *Table {
	before := t.keep
	return &Table{path: t.path, columns: t.columns, keep: func(r *Row) bool { return before(r) && keep(r) }}
}

// Scan reads a table. Project returns the key and the value of each row. The value of a row for [Lookup] may be the row
// itself, which is valid until the next one: then columns are converted only for rows that have a match.
func Scan[K, V any](t *Table, project func(*Row) (K, V)) *mapreduce.Pairs[K, V] {
	return mapreduce.MapSplit(mapreduce.Lines(t.path), func(task *mapreduce.Task, lines iter.Seq[string], emit func(K, V)) error {
		r := &Row{table: t, task: task}
		for line := range lines {
			if err := emitRow(r, line, project, emit); err != nil {
				return err
			}
		}
		return nil
	})
}

// emitRow emits the row of a line unless the table's filter drops it.
func emitRow[K, V any](r *Row, line string, project func(*Row) (K, V), emit func(K, V)) error {
	if r.read(line); r.err == nil && r.table.keep(r) {
		k, v := project(r)
		if r.err == nil {
			emit(k, v) // a Lookup may ask for more columns, and set r.err
		}
	}
	return r.err
}

// Rows reads the result of another job of the flow.
func Rows[K, V any](r *mapreduce.Result[K, V]) *mapreduce.Pairs[K, V] {
	return Project(r, func(k K, v V) (K, V) { return k, v })
}

// Project reads the result of another job of the flow. f returns the new key and value of each row.
func Project[K, V, KO, VO any](r *mapreduce.Result[K, V], f func(K, V) (KO, VO)) *mapreduce.Pairs[KO, VO] {
	return mapreduce.Map(mapreduce.From(r), func(_ *mapreduce.Task, row mapreduce.Pair[K, V], emit func(KO, VO)) error {
		emit(f(row.A, row.B))
		return nil
	})
}

// Path returns the glob for a table below dir: name.tbl, or the files name/*.tbl. A job refuses
// the path if both exist, because one may be a copy of the other.
func Path(dir, name string) string {
	var b strings.Builder
	for _, c := range strings.TrimRight(dir, "/") {
		if strings.ContainsRune(`*?[]{}\`, c) { // escape characters of dir
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String() + "/" + name + "{.tbl|/*.tbl}"
}
