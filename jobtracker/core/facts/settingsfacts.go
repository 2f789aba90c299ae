package facts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Facts that change settings carry numbers. The leader proposes one twice if the outcome is
// unknown; the second must not undo later changes.

// Changed replaces the job settings of a submission.
type Changed struct {
	Key       string     `msgpack:"k"` // of the submission
	N         int        `msgpack:"n"` // 1 for the first change
	Terms     wire.Terms `msgpack:"t"`
	Suspended bool       `msgpack:"s"`
}

func (*Changed) number() byte   { return 17 }
func (x *Changed) Name() string { return fmt.Sprintf("changed %s/%d", x.Key, x.N) }
func (x *Changed) Fits(f *Facts) bool {
	s := f.submissions[x.Key]
	return s != nil && s.body != nil && x.N == s.changes+1
}
func (x *Changed) apply(f *Facts, _ uint64) {
	s := f.submissions[x.Key]
	s.changes, s.terms, s.suspended = x.N, copied(x.Terms), x.Suspended
}

// copied returns job settings that share no memory with t.
func copied(t wire.Terms) wire.Terms {
	t.SLA = slices.Clone(t.SLA)
	return t
}

// Scheduled replaces the scheduling. It overrides the flags of job trackers.
type Scheduled struct {
	N          int             `msgpack:"n"`
	Scheduling wire.Scheduling `msgpack:"s"`
}

func (*Scheduled) number() byte   { return 18 }
func (x *Scheduled) Name() string { return fmt.Sprintf("scheduled %d", x.N) }
func (x *Scheduled) Fits(f *Facts) bool {
	return x.N == f.scheduled.N+1
}
func (x *Scheduled) apply(f *Facts, _ uint64) { f.scheduled = *x }

// Pooled replaces the pool table.
type Pooled struct {
	N     int        `msgpack:"n"`
	Table pool.Table `msgpack:"t"`
}

func (*Pooled) number() byte   { return 19 }
func (x *Pooled) Name() string { return fmt.Sprintf("pooled %d", x.N) }
func (x *Pooled) Fits(f *Facts) bool {
	return x.N == f.pooled.N+1
}
func (x *Pooled) apply(f *Facts, _ uint64) {
	f.pooled = *x
	slices.SortFunc(f.pooled.Table.Pools, func(a, b pool.Pool) int { return cmp.Compare(a.Name, b.Name) })
}
