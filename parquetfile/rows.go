package parquetfile

import (
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Values of rows, besides bool, int32, int64, float32, float64, string, and nil for null: a plain group is a Struct with
// a value for each of its children, a list or repeated node a []any, and a map a []Entry.
type (
	Struct []any
	Entry  struct{ Key, Value any }
)

const (
	levelBatch = 256
	// rowValues and the bytes of a column bound its values in one row, since runs of nulls take no bytes.
	rowValues = 1 << 22
)

// Rows reads the values of a node, and of all below it, in one row group. It puts rows together from columns by their
// levels: the repetition level of a value is the depth of the list in which it begins a new element, the definition level
// the number of nodes above it that are there. All columns of a node must tell the same.
type Rows struct {
	f      *File
	node   *Node
	leaves []leaf // by column; nil if the node has it not
	left   int64  // rows
	taken  int64  // values, and bytes of text/16
}

// leaf is a column with its levels.
type leaf interface {
	// peek returns the levels of the next value. At the end of the column there is none.
	peek() (rep, def uint8, ok bool, err error)
	// take returns the next value, nil for null.
	take() any
	// bad adds the column's name and place to an error.
	bad(err error) error
	// begin begins a row.
	begin()
}

// ReadRows begins to read a node. It may be File.Root.
func (f *File) ReadRows(group int, n *Node) (*Rows, error) {
	r := &Rows{f: f, node: n, left: f.Groups[group].Rows, leaves: make([]leaf, len(f.Columns))}
	return r, r.open(group, n)
}

// open opens the columns of a node.
func (r *Rows) open(group int, n *Node) (err error) {
	switch {
	case n.Shape == Leaf:
		r.leaves[n.Column], err = r.f.leafOf(group, n.Column)
		return err
	case len(n.Children) == 0:
		return &Error{Offset: r.f.footer, Group: -1, Err: unsupported("group %q has no columns", n.Name)}
	}
	for _, child := range n.Children {
		if err := r.open(group, child); err != nil {
			return err
		}
	}
	return nil
}

// Taken returns how large the rows so far were: the values of all columns, with nulls, and one more for 16 bytes of text.
func (r *Rows) Taken() int64 { return r.taken }

// each calls do for the columns of a node until it returns an error.
func (r *Rows) each(n *Node, do func(leaf) error) error {
	if n.Shape == Leaf {
		return do(r.leaves[n.Column])
	}
	for _, child := range n.Children {
		if err := r.each(child, do); err != nil {
			return err
		}
	}
	return nil
}

// first returns the first column of a node.
func (r *Rows) first(n *Node) leaf {
	for n.Shape != Leaf {
		n = n.Children[0]
	}
	return r.leaves[n.Column]
}

func (f *File) leafOf(group, column int) (leaf, error) {
	switch f.Columns[column].Type.Physical {
	case format.Boolean:
		return newLeaf[bool](f, group, column)
	case format.Int32:
		return newLeaf[int32](f, group, column)
	case format.Int64:
		return newLeaf[int64](f, group, column)
	case format.Float:
		return newLeaf[float32](f, group, column)
	case format.Double:
		return newLeaf[float64](f, group, column)
	}
	return newLeaf[string](f, group, column)
}

// Next returns the value of the next row. There must be one.
func (r *Rows) Next() (any, error) {
	for _, l := range r.leaves {
		if l != nil {
			l.begin()
		}
	}
	v, err := r.row()
	if err != nil {
		return nil, err
	}
	if r.left--; r.left == 0 {
		err = r.each(r.node, atEnd)
	}
	return v, err
}

// row returns the value of a row, nil if an optional group above the node is not there.
func (r *Rows) row() (any, error) {
	n := r.node
	above := n.maxDef
	if n.Optional || n.Repeated {
		above--
	}
	if above > 0 {
		_, def, ok, err := r.first(n).peek()
		if err != nil {
			return nil, err
		}
		if ok && def < above {
			return nil, r.skip(n, 0, def)
		}
	}
	return r.value(n, 0)
}

// atEnd refuses a column with more values.
func atEnd(l leaf) error {
	_, _, more, err := l.peek()
	if err == nil && more {
		err = l.bad(damaged("it has values after its last row"))
	}
	return err
}

// value returns the next value of a node; what is above it is there. rep is the level of its first values.
func (r *Rows) value(n *Node, rep uint8) (any, error) {
	first := r.first(n)
	if n.Optional || n.Repeated {
		_, def, _, err := first.peek()
		if err != nil {
			return nil, err
		}
		if def < n.maxDef {
			err := r.skip(n, rep, n.maxDef-1)
			if n.Repeated {
				return []any{}, err
			}
			return nil, err
		}
	}
	if !n.Repeated {
		return r.one(n, rep)
	}
	all := []any{}
	for {
		v, err := r.one(n, rep)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		next, _, more, err := first.peek()
		if err != nil {
			return nil, err
		}
		if rep = n.maxRep; !more || next != rep {
			return all, nil
		}
	}
}

// skip takes the nulls of a node that is not there; def is their level.
func (r *Rows) skip(n *Node, rep, def uint8) error {
	return r.each(n, func(l leaf) error {
		if err := check(l, rep, def); err != nil {
			return err
		}
		r.take(l)
		return nil
	})
}

func (r *Rows) take(l leaf) any {
	v := l.take()
	r.taken++
	if text, ok := v.(string); ok {
		r.taken += int64(len(text) / 16)
	}
	return v
}

// check refuses a column if its next value has other levels than the values before it say.
func check(l leaf, rep, def uint8) error {
	r, d, ok, err := l.peek()
	switch {
	case err != nil:
		return err
	case !ok:
		return l.bad(damaged("it has fewer values than rows"))
	case r != rep || d != def:
		return l.bad(damaged("a value has levels %d and %d, which those of other columns or before it contradict", r, d))
	}
	return nil
}

// one returns a value of a node that is there, or one element of it.
func (r *Rows) one(n *Node, rep uint8) (any, error) {
	switch n.Shape {
	case Leaf:
		l := r.leaves[n.Column]
		if err := check(l, rep, n.maxDef); err != nil {
			return nil, err
		}
		return r.take(l), nil
	case List:
		return r.list(n, rep)
	case Map:
		return r.entries(n, rep)
	}
	values := make(Struct, len(n.Children))
	for i, child := range n.Children {
		var err error
		if values[i], err = r.value(child, rep); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (r *Rows) list(n *Node, rep uint8) (any, error) {
	v, err := r.value(n.Children[0], rep)
	if err != nil || !n.inside {
		return v, err
	}
	all := v.([]any)
	for i := range all {
		all[i] = all[i].(Struct)[0]
	}
	return all, nil
}

func (r *Rows) entries(n *Node, rep uint8) (any, error) {
	v, err := r.value(n.Children[0], rep)
	if err != nil {
		return nil, err
	}
	all := []Entry{}
	for _, e := range v.([]any) {
		all = append(all, Entry{e.(Struct)[0], e.(Struct)[1]})
	}
	return all, nil
}

// levels is the leaf of a Go type.
type levels[V Value] struct {
	*Column[V]
	reps, defs []uint32
	values     []V
	at, n      int // in the batch
	next       int // of its values
	budget     int64
}

func newLeaf[V Value](f *File, group, column int) (leaf, error) {
	c, err := readColumn[V](f, group, column)
	return &levels[V]{Column: c, reps: make([]uint32, levelBatch), defs: make([]uint32, levelBatch), values: make([]V, levelBatch)}, err
}

func (l *levels[V]) begin() { l.budget = max(rowValues, l.chunk.to-l.chunk.from) }

func (l *levels[V]) peek() (rep, def uint8, ok bool, err error) {
	if l.at == l.n {
		if err := l.load(); err != nil {
			return 0, 0, false, l.bad(err)
		}
		if l.n == 0 {
			return 0, 0, false, nil
		}
	}
	if l.budget < 0 {
		return 0, 0, false, l.bad(damaged("a row has too many values for the bytes of its column"))
	}
	return uint8(l.reps[l.at]), uint8(l.defs[l.at]), true, nil
}

// load reads the next batch, which is empty at the end of the column.
func (l *levels[V]) load() error {
	l.at, l.n, l.next = 0, 0, 0
	for l.page.left == 0 {
		if l.left == 0 {
			return nil
		}
		if err := l.nextPage(); err != nil {
			return err
		}
	}
	n := min(l.page.left, levelBatch)
	if err := read(&l.page.repetitions, l.reps[:n], l.info.maxRep); err != nil {
		return err
	}
	if err := read(&l.page.levels, l.defs[:n], l.info.maxDef); err != nil {
		return err
	}
	present := 0
	for _, d := range l.defs[:n] {
		if d == uint32(l.info.maxDef) {
			present++
		}
	}
	if err := l.page.values(l.values[:present]); err != nil {
		return err
	}
	l.n, l.page.left = n, l.page.left-n
	return nil
}

// read reads levels; zeros if the column has none.
func read(h *hybrid, dst []uint32, most uint8) error {
	if most == 0 {
		clear(dst)
		return nil
	}
	if err := h.read(dst); err != nil {
		return err
	}
	if level := slices.Max(dst); level > uint32(most) {
		return damaged("a value has level %d of %d", level, most)
	}
	return nil
}

func (l *levels[V]) take() any {
	present := l.defs[l.at] == uint32(l.info.maxDef)
	l.at++
	l.budget--
	if !present {
		return nil
	}
	l.next++
	return l.values[l.next-1]
}
