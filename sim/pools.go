package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// nestedPools are the pools in others that jobs may be moved to, if the table has them.
var nestedPools = []string{"dept.x", "dept.team.y", "dept.team.z"}

// drawTree adds limits of users to a table, and pools in pools: in "dept", in "dept.team", and perhaps all
// in the root.
func drawTree(rnd *rand.Rand, t *pool.Table, leaf func(name string) pool.Pool) {
	draw := func(most int) int {
		if rnd.IntN(2) == 0 {
			return pool.Unlimited
		}
		return 1 + rnd.IntN(most)
	}
	inner := func(name string) {
		t.Pools = append(t.Pools, pool.Pool{Name: name, Inner: true, Max: [2]int{draw(4), draw(4)}, MaxRunning: draw(3), Weight: float64(rnd.IntN(3))})
	}
	inner("dept")
	inner("dept.team")
	for _, name := range nestedPools {
		t.Pools = append(t.Pools, leaf(name))
	}
	if rnd.IntN(3) == 0 {
		inner(pool.Root)
		if !slices.ContainsFunc(t.Pools, func(p pool.Pool) bool { return p.Name == wire.DefaultPool }) {
			t.Pools = append(t.Pools, leaf(wire.DefaultPool)) // as Parse does
		}
	}
	if rnd.IntN(2) == 0 {
		t.Users = append(t.Users, pool.UserLimit{MaxRunning: 1 + rnd.IntN(3)})
	}
	if rnd.IntN(2) == 0 {
		t.Users = append(t.Users, pool.UserLimit{Name: owners[rnd.IntN(len(owners))], MaxRunning: 1 + rnd.IntN(3)})
	}
	slices.SortFunc(t.Pools, func(a, b pool.Pool) int { return cmp.Compare(a.Name, b.Name) })
}

// owners are the users who submit jobs.
var owners = []string{"sim", "sam"}

// limitBook checks limits that concern jobs of several pools. They may be exceeded after entries of the
// log and inventories: a limit becomes lower, a job moves, a new leader finds attempts. From then
// on a launch never exceeds them further.
type limitBook struct {
	tables  []loggedTable
	changes []int              // indexes of such entries
	most    map[string]ceiling // by leader and limit
}

type loggedTable struct {
	index int
	table pool.Table
}

// ceiling is the maximum that counts for launches, since the last event that could exceed the limit.
type ceiling struct {
	since string
	most  int
}

// note takes a new entry of the log.
func (b *limitBook) note(w *world, x logged) {
	kind, _, _ := strings.Cut(x.key, " ")
	switch kind {
	case "leader-elected", "settings-changed":
		b.changes = append(b.changes, int(x.entry.Index))
	case "pools-changed":
		b.changes = append(b.changes, int(x.entry.Index))
		fact, err := facts.Decode(x.entry.Data)
		w.must(err)
		b.tables = append(b.tables, loggedTable{int(x.entry.Index), fact.(*facts.PoolsChanged).Table})
	}
}

// before returns how many of the indexes are at most an index.
func before[T any](list []T, index int, of func(T) int) int {
	n := len(list)
	for n > 0 && of(list[n-1]) > index {
		n--
	}
	return n
}

// checkLaunch checks the limits of the pools around a job's own and of its user after a launch.
func (b *limitBook) checkLaunch(w *world, n *jobTracker, id wire.AttemptID) {
	i := before(b.tables, n.applied, func(t loggedTable) int { return t.index })
	if i == 0 {
		return
	}
	table := b.tables[i-1].table
	since := fmt.Sprint(n.core.Epoch(), before(b.changes, n.applied, func(x int) int { return x }), n.listings)
	check := func(of string, have, most int) {
		key, c := n.name+" "+of, ceiling{since, max(have, most)}
		if last := b.most[key]; last.since == since {
			if c.most = last.most; have > c.most {
				w.fail("V13: %s launches %v: %s has %d, at most %d", n.name, id, of, have, most)
			}
			if have <= most {
				c.most = most
			}
		}
		b.most[key] = c
	}
	s, _ := n.core.Status(id.Task.Job)
	phase := pool.PhaseIndex(id.Task.Kind)
	name := cmp.Or(s.Settings.Pool, wire.DefaultPool)
	for _, p := range n.core.Cluster(n.clock()).InPools {
		if x, ok := table.Find(p.Name); ok && x.Inner && x.Max[phase] != pool.Unlimited && isAround(&table, p.Name, name) {
			check(fmt.Sprintf("pool %s of %vs", p.Name, id.Task.Kind), p.Running[phase], x.Max[phase])
		}
	}
	for _, limit := range table.RunningLimits(s.Owner, name) {
		check(limit.Of+" of running jobs", b.running(w, n, &table, limit.Of), limit.Max)
	}
}

// isAround reports whether a pool is around another one.
func isAround(t *pool.Table, outer, name string) bool {
	for name = t.Around(name); name != "" && name != outer; name = t.Around(name) {
	}
	return name == outer
}

// running counts the jobs with slots to which a limit applies.
func (b *limitBook) running(w *world, n *jobTracker, table *pool.Table, of string) (jobs int) {
	for _, c := range w.clients {
		for _, id := range c.ids {
			s, ok := n.core.Status(id)
			if !ok || s.State.Ended() || s.Maps.Running+s.Reduces.Running == 0 {
				continue
			}
			if slices.ContainsFunc(table.RunningLimits(s.Owner, s.Settings.Pool), func(x pool.RunningLimit) bool { return x.Of == of }) {
				jobs++
			}
		}
	}
	return jobs
}
