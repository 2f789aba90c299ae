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

// SettingsChanged replaces the job settings of a submission.
type SettingsChanged struct {
	Key       string        `msgpack:"k"` // of the submission
	N         int           `msgpack:"n"` // 1 for the first change
	Settings  wire.Settings `msgpack:"t"`
	Suspended bool          `msgpack:"s"`
}

func (*SettingsChanged) number() byte   { return 17 }
func (x *SettingsChanged) Name() string { return fmt.Sprintf("settings-changed %s/%d", x.Key, x.N) }
func (x *SettingsChanged) Fits(f *Facts) bool {
	s := f.submissions[x.Key]
	return s != nil && s.body != nil && x.N == s.changes+1
}
func (x *SettingsChanged) apply(f *Facts, _ uint64) {
	s := f.changeSubmission(x.Key)
	s.changes, s.settings, s.suspended = x.N, copied(x.Settings), x.Suspended
}

// copied returns job settings that share no memory with t.
func copied(t wire.Settings) wire.Settings {
	t.SLA = slices.Clone(t.SLA)
	return t
}

// SchedulingChanged replaces the scheduling. It overrides the flags of job trackers.
type SchedulingChanged struct {
	N          int             `msgpack:"n"`
	Scheduling wire.Scheduling `msgpack:"s"`
}

func (*SchedulingChanged) number() byte   { return 18 }
func (x *SchedulingChanged) Name() string { return fmt.Sprintf("scheduling-changed %d", x.N) }
func (x *SchedulingChanged) Fits(f *Facts) bool {
	return x.N == f.scheduling.N+1
}
func (x *SchedulingChanged) apply(f *Facts, _ uint64) { f.scheduling = *x }

// PoolsChanged replaces the pool table.
type PoolsChanged struct {
	N     int        `msgpack:"n"`
	Table pool.Table `msgpack:"t"`
}

// poolTree is the number of a pool table with inner pools, preemption, administrators or limits of
// users. A build without them would lose them: it does not know the number, and stops.
const poolTree = 28

// poolGroups is the number of a pool table with groups, which a build without them would lose.
const poolGroups = 31

func (x *PoolsChanged) number() byte {
	if x.Table.HasGroups() {
		return poolGroups
	}
	if x.Table.IsTree() {
		return poolTree
	}
	return 19
}
func (x *PoolsChanged) Name() string { return fmt.Sprintf("pools-changed %d", x.N) }
func (x *PoolsChanged) Fits(f *Facts) bool {
	return x.N == f.pools.N+1
}
func (x *PoolsChanged) apply(f *Facts, _ uint64) {
	f.pools = *x
	slices.SortFunc(f.pools.Table.Pools, func(a, b pool.Pool) int { return cmp.Compare(a.Name, b.Name) })
}
