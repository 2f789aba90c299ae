package table

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

// Side is a small table for lookups. At its first lookup, a map reads the whole table into
// memory, from a side file of the job. See [Job].
type Side[K comparable, V any] struct {
	name    string
	table   *Table
	project func(*Row) (K, V)

	task *mapreduce.Task // that has read rows
	rows map[K]V
}

// NewSide returns a side table. Project returns the key and value of each row. Of several rows
// with the same key, the last one counts.
func NewSide[K comparable, V any](name string, t *Table, project func(*Row) (K, V)) *Side[K, V] {
	return &Side[K, V]{name: name, table: t, project: project}
}

// Get looks up a key for a row of [Scan], or a row of another side table.
func (s *Side[K, V]) Get(r *Row, key K) (value V, ok bool) {
	if s.task != r.task {
		if err := s.load(r.task); err != nil {
			r.fail("look up in %s: %w", s.name, err)
			return value, false
		}
	}
	value, ok = s.rows[key]
	return value, ok
}

// Of returns the value of a key, or zero.
func (s *Side[K, V]) Of(r *Row, key K) V {
	value, _ := s.Get(r, key)
	return value
}

// Has reports whether the table has a key.
func (s *Side[K, V]) Has(r *Row, key K) bool {
	_, ok := s.Get(r, key)
	return ok
}

func (s *Side[K, V]) load(t *mapreduce.Task) error {
	parts, err := t.Parts(s.name)
	if err != nil {
		return err
	}
	rows := make(map[K]V)
	for _, part := range parts {
		if err := s.read(&Row{table: s.table, task: t}, part, rows); err != nil {
			return err
		}
	}
	s.task, s.rows = t, rows
	return nil
}

func (s *Side[K, V]) read(r *Row, part mapreduce.SidePart, rows map[K]V) error {
	f, err := os.Open(part.Path)
	if err != nil {
		return fmt.Errorf("read %s: %w", part.URL, err)
	}
	defer f.Close()
	in, end := bufio.NewReader(f), false // one string per line: a field in rows holds only its line in memory
	for offset := 0; !end; {
		line, err := in.ReadString('\n')
		if end = err == io.EOF; err != nil && !end {
			return fmt.Errorf("read %s: %w", part.URL, err)
		}
		if line == "" {
			break
		}
		if err := emitRow(r, strings.TrimRight(line, "\r\n"), s.project, func(k K, v V) { rows[k] = v }); err != nil {
			return fmt.Errorf("%s, offset %d: %w", part.URL, offset, err)
		}
		offset += len(line)
	}
	return nil
}

func (s *Side[K, V]) file() (name, path string) { return s.name, s.table.path }

// SideTable is a [Side] of any types.
type SideTable interface{ file() (name, path string) }

// Job returns a job that writes a result. Its maps may look up rows in the given side
// tables.
func Job[K, V any](name string, r *mapreduce.Result[K, V], sides ...SideTable) *mapreduce.Job {
	job := r.Job(name)
	job.Files = make(map[string]string)
	for _, s := range sides {
		name, path := s.file()
		job.Files[name] = path
	}
	return job
}
