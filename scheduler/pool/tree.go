package pool

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// tree has the pools of a snapshot's jobs, and the pools around them, up to the root.
type tree struct {
	root   *node
	leaves []*node // those with jobs, by name
}

// node is a pool with jobs in it. Bounds never exceed what its jobs can use.
type node struct {
	pool   Pool
	inner  []*node // by name
	jobs   []*scheduler.Job
	own    scheduler.Share // the pool's own bounds
	bounds scheduler.Share // within those of the pools around it
	share  float64         // its part of the slots, if slots that a pool cannot use go to others
	fair   float64         // the same, as if all pools could use all slots
}

// tree builds the tree of a snapshot's jobs, which may be in pools without entries.
func (t *Table) tree(s *scheduler.Snapshot, poolOf func(wire.JobID) string) *tree {
	nodes := make(map[string]*node)
	var nodeOf func(name string) *node
	nodeOf = func(name string) *node {
		n := nodes[name]
		if n == nil {
			p, _ := t.Find(name)
			n = &node{pool: p}
			nodes[name] = n
			if name != Root {
				outer := nodeOf(cmp.Or(t.Around(name), Root))
				outer.inner = append(outer.inner, n)
			}
		}
		return n
	}
	x := &tree{root: nodeOf(Root)}
	for i := range s.Jobs {
		n := nodeOf(cmp.Or(poolOf(s.Jobs[i].ID), wire.DefaultPool))
		if n.pool.Inner { // jobs that were in it when it was not: as in one more pool in it
			n = nodeOf(n.pool.Name + ".")
			n.pool.Name = strings.TrimSuffix(n.pool.Name, ".")
		}
		if n.jobs == nil {
			x.leaves = append(x.leaves, n)
		}
		n.jobs = append(n.jobs, &s.Jobs[i])
	}
	byName := func(a, b *node) int { return strings.Compare(a.pool.Name, b.pool.Name) }
	slices.SortFunc(x.leaves, byName)
	for _, n := range nodes {
		slices.SortFunc(n.inner, byName)
	}
	phase, slots := PhaseIndex(s.Phase), float64(s.Slots)
	x.root.bound(phase)
	x.root.bounds = x.root.own
	x.root.restrict()
	x.root.divide(slots, func(n *node) (scheduler.Share, *float64) { return n.bounds, &n.share })
	x.root.divide(slots, func(n *node) (scheduler.Share, *float64) {
		return scheduler.Share{Min: n.bounds.Min, Max: n.pool.most(phase), Weight: n.pool.Weight}, &n.fair
	})
	return x
}

// most returns the pool's maximum, which may be very large.
func (p *Pool) most(phase int) int {
	if p.Max[phase] == Unlimited {
		return math.MaxInt32
	}
	return p.Max[phase]
}

// bound computes the own bounds of a pool and the pools in it: its minimum is at least the sum of
// theirs.
func (n *node) bound(phase int) {
	usable, least := 0, 0
	for _, j := range n.jobs {
		usable += j.Max
	}
	for _, x := range n.inner {
		x.bound(phase)
		usable += x.own.Max
		least += x.own.Min
	}
	usable = min(usable, n.pool.most(phase))
	n.own = scheduler.Share{Min: min(max(n.pool.Min[phase], least), usable), Max: usable, Weight: n.pool.Weight}
}

// restrict divides the bounds of a pool among the pools in it.
func (n *node) restrict() {
	shares, least, most := make([]scheduler.Share, len(n.inner)), 0, 0
	for i, x := range n.inner {
		shares[i] = x.own
		least, most = least+x.own.Min, most+x.own.Max
	}
	if most > n.bounds.Max {
		shares = scaleMinima(shares, float64(n.bounds.Max))
		for i, slots := range scheduler.Waterline(shares, n.bounds.Max) {
			shares[i].Max = slots
			shares[i].Min = min(shares[i].Min, slots)
		}
	}
	if least < n.bounds.Min {
		for i, slots := range scheduler.Waterline(shares, n.bounds.Min) {
			shares[i].Min = slots
		}
	}
	for i, x := range n.inner {
		x.bounds = shares[i]
		x.restrict()
	}
}

// divide divides slots among the pools in a pool like water. of returns a pool's bounds, and where
// its part is stored.
func (n *node) divide(slots float64, of func(*node) (scheduler.Share, *float64)) {
	bounds, part := of(n)
	*part = min(slots, float64(bounds.Max))
	shares := make([]scheduler.Share, len(n.inner))
	for i, x := range n.inner {
		shares[i], _ = of(x)
	}
	shares = scaleMinima(shares, *part)
	level := scheduler.WaterLevel(shares, *part)
	for i, x := range n.inner {
		x.divide(shares[i].At(level), of)
	}
}

// scaleMinima reduces minima that together exceed the slots.
func scaleMinima(shares []scheduler.Share, slots float64) []scheduler.Share {
	total := 0
	for _, s := range shares {
		total += s.Min
	}
	if float64(total) <= slots {
		return shares
	}
	shares = slices.Clone(shares)
	for i := range shares {
		shares[i].Min = int(float64(shares[i].Min) * slots / float64(total))
	}
	return shares
}
