// Package table is a small relational layer over package mapreduce, for files of
// rows whose fields each end with '|', as TPC's generators write them.
//
//   - [Scan] reads a table's rows as keys with values: the projection.
//     [Table.Where] filters them first.
//   - [Side] is a small table that every map holds whole, to look rows up in.
//   - [Group] folds the values of each key, in the maps already.
//   - [Join] brings the rows of two sides together by key; [JoinGroup] and
//     [LeftJoinGroup] fold the right side's first, so that what is summed up is
//     joined once.
//   - [Rows] reads a result in the next job.
//   - [Order], [Top] and [Total] write the answer as lines of text.
//
// Numbers are integers: decimals of two places are counted in hundredths, and a
// product of two such in ten-thousandths; [Fixed] prints them. So sums are exact, up
// to 9.2e18 of their unit; beyond, [Add] and [Row.Times] fail the job.
//
// A line with too few or too many fields, or a field that is no number, decimal or
// date where one is read, fails the job; the error has the line's file and offset.
package table

import (
	"fmt"
	"iter"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

const maxColumns = 32

// Table is where rows are, and what their fields are called.
type Table struct {
	path    string
	columns []string
	keep    func(*Row) bool
}

// New makes a table of the files at a path, which is one for [mapreduce.Lines].
// Every row has a field for each of the columns.
func New(path string, columns ...string) *Table {
	if len(columns) == 0 || len(columns) > maxColumns {
		panic(fmt.Sprintf("table %s has %d columns: want 1 to %d", path, len(columns), maxColumns))
	}
	return &Table{path: path, columns: columns, keep: func(*Row) bool { return true }}
}

// Where is the table's rows for which keep is true.
func (t *Table) Where(keep func(*Row) bool) *Table {
	before := t.keep
	return &Table{path: t.path, columns: t.columns, keep: func(r *Row) bool { return before(r) && keep(r) }}
}

// Scan reads a table. Project gives the key and the value of each row.
func Scan[K, V any](t *Table, project func(*Row) (K, V)) *mapreduce.Pairs[K, V] {
	return mapreduce.MapSplit(mapreduce.Lines(t.path), func(task *mapreduce.Task, lines iter.Seq[string], emit func(K, V)) error {
		r := &Row{table: t, task: task}
		for line := range lines {
			if err := scanned(r, line, project, emit); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanned emits a line's row, if the table has it.
func scanned[K, V any](r *Row, line string, project func(*Row) (K, V), emit func(K, V)) error {
	if r.read(line); r.err == nil && r.table.keep(r) {
		k, v := project(r)
		if r.err == nil {
			emit(k, v)
		}
	}
	return r.err
}

// Rows reads what another job of the flow writes.
func Rows[K, V any](r *mapreduce.Result[K, V]) *mapreduce.Pairs[K, V] {
	return project(r, func(k K, v V) (K, V) { return k, v })
}

func project[K, V, KO, VO any](r *mapreduce.Result[K, V], f func(K, V) (KO, VO)) *mapreduce.Pairs[KO, VO] {
	return mapreduce.Map(mapreduce.From(r), func(_ *mapreduce.Task, row mapreduce.Pair[K, V], emit func(KO, VO)) error {
		emit(f(row.A, row.B))
		return nil
	})
}

// Path is where the table called name is below dir: in name.tbl, or in the files
// name/*.tbl. Where there are both, it is refused: one would be the other's copy.
func Path(dir, name string) string {
	var b strings.Builder
	for _, c := range strings.TrimRight(dir, "/") {
		if strings.ContainsRune(`*?[]{}\`, c) { // of the directory's own name
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String() + "/" + name + "{.tbl|/*.tbl}"
}
