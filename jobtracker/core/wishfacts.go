package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Facts about what users wish carry numbers: one that was proposed twice, since its
// outcome was not known, must not undo what was wished after it.

// changed says what the owner of a submission wishes from now on.
type changed struct {
	Key       string     `msgpack:"k"` // of the submission
	N         int        `msgpack:"n"` // 1 for the first change
	Terms     wire.Terms `msgpack:"t"`
	Suspended bool       `msgpack:"s"`
}

func (*changed) number() byte  { return 17 }
func (x *changed) key() string { return fmt.Sprintf("changed %s/%d", x.Key, x.N) }
func (x *changed) fits(f *Facts) bool {
	s := f.submissions[x.Key]
	return s != nil && s.body != nil && x.N == s.changes+1
}
func (x *changed) apply(f *Facts, _ uint64) {
	s := f.submissions[x.Key]
	s.changes, s.terms, s.suspended = x.N, x.Terms, x.Suspended
}

// scheduled says how slots are shared from now on, whatever job trackers were
// started with.
type scheduled struct {
	N          int             `msgpack:"n"`
	Scheduling wire.Scheduling `msgpack:"s"`
}

func (*scheduled) number() byte  { return 18 }
func (x *scheduled) key() string { return fmt.Sprintf("scheduled %d", x.N) }
func (x *scheduled) fits(f *Facts) bool {
	return x.N == f.scheduled.N+1
}
func (x *scheduled) apply(f *Facts, _ uint64) { f.scheduled = *x }

// pooled brings a new pool table.
type pooled struct {
	N     int        `msgpack:"n"`
	Table pool.Table `msgpack:"t"`
}

func (*pooled) number() byte  { return 19 }
func (x *pooled) key() string { return fmt.Sprintf("pooled %d", x.N) }
func (x *pooled) fits(f *Facts) bool {
	return x.N == f.pooled.N+1
}
func (x *pooled) apply(f *Facts, _ uint64) {
	f.pooled = *x
	slices.SortFunc(f.pooled.Table.Pools, func(a, b pool.Pool) int { return cmp.Compare(a.Name, b.Name) })
}
